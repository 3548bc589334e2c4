"""The report of `make image` about an image."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from scripts.image_inventory import (
    PROBE,
    TREE,
    Part,
    bill_of_materials,
    differing_files,
    drift,
    faults_of,
    licence_list,
    licence_of,
    licences_of_notice,
    parts_of,
    pins,
)

pytestmark = pytest.mark.one_back_end
ROOT = Path(__file__).resolve().parents[2]
HASH = "0" * 64
LOCK = f"""django==5.2.19 \\
    --hash=sha256:{HASH}
celery[redis]==5.7.0 \\
    --hash=sha256:{HASH} \\
    --hash=sha256:{"1" * 64}
"""
AT = datetime(2026, 1, 2, tzinfo=UTC)
RELEASE = {"ID": "debian", "VERSION_ID": "12"}


def package(name: str, version: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "version": version, "expression": None, "license": None, "classifiers": [], **more}


def found(**changes: Any) -> dict[str, Any]:
    """The probe's output in a good image."""
    return {
        "python": "3.11.2",
        "packages": [package("Django", "5.2.19", expression="BSD-3-Clause"), package("celery", "5.7.0")],
        "system": [{"name": "libc6", "version": "2.36-9", "source": "glibc", "notice": "License: LGPL-2.1\n"}],
        "release": RELEASE,
        "programs": [],
        "modules": [],
        "elevated": [],
        "unlinked": [],
        "lost": [],
        "user": [10001, 10001],
        **changes,
    }


def bill(parts: list[Part]) -> dict[str, Any]:
    text = bill_of_materials(parts, version="1.2.3", commit="a" * 40, release=RELEASE, at=AT)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    made: dict[str, Any] = json.loads(text)
    return made


def test_the_bill_names_every_part_by_its_address() -> None:
    made = bill(parts_of(found(), LOCK, [("bootstrap", "5.3.8", "MIT"), ("@tabler/icons", "3.51.0", "MIT")]))
    assert {each["purl"] for each in made["components"]} == {
        "pkg:pypi/django@5.2.19",
        "pkg:pypi/celery@5.7.0",
        "pkg:deb/debian/libc6@2.36-9?distro=debian-12",
        "pkg:npm/bootstrap@5.3.8",
        "pkg:npm/%40tabler/icons@3.51.0",
        "pkg:generic/python@3.11.2",
    }
    assert made["metadata"]["component"]["version"] == "1.2.3"
    assert made["metadata"]["timestamp"] == "2026-01-02T00:00:00+00:00"


def test_a_hash_is_named_where_the_lock_leaves_no_choice() -> None:
    hashes = {each["name"]: each.get("hashes") for each in bill(parts_of(found(), LOCK, []))["components"]}
    assert hashes["django"] == [{"alg": "SHA-256", "content": HASH}]
    assert hashes["celery"] is None


def test_a_bill_is_the_same_for_the_same_image() -> None:
    parts = parts_of(found(), LOCK, [])
    assert bill(parts) == bill(list(reversed(parts)))


def test_the_lock_of_the_repository_makes_a_valid_bill() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    installed = found(packages=[package(name, version) for name, version in pins(lock)])
    assert drift(lock, installed) == []
    addresses = {each["purl"] for each in bill(parts_of(installed, lock, []))["components"]}
    assert addresses >= {f"pkg:pypi/{name}@{version}" for name, version in pins(lock)}


def test_what_is_not_locked_or_not_installed_is_named() -> None:
    other = found(packages=[package("Django", "5.2.18"), package("celery", "5.7.0")])
    assert drift(LOCK, other) == [
        "django 5.2.19 is locked and not in the image.",
        "django 5.2.18 is in the image and not locked.",
    ]


@pytest.mark.parametrize(
    ("said", "licence"),
    [
        ({"expression": "MIT OR Apache-2.0", "license": "other"}, "MIT OR Apache-2.0"),
        ({"classifiers": ["License :: OSI Approved :: MIT License", "Topic :: X"], "license": "x"}, "MIT License"),
        ({"license": "BSD"}, "BSD"),
        ({"license": "A long\ntext"}, "not stated"),
        ({}, "not stated"),
    ],
)
def test_licences_of_packages(said: dict[str, Any], licence: str) -> None:
    assert licence_of(package("some", "1", **said)) == licence


def test_licences_of_debian_packages() -> None:
    assert (
        licences_of_notice("License: GPL-2+\n text\nLicense: BSD-3-clause\nLicense: GPL-2+\n") == "BSD-3-clause; GPL-2+"
    )
    assert licences_of_notice("It may be copied.") == "its copyright file"
    assert licences_of_notice("") == "not stated"


def test_the_list_of_licences_has_a_line_for_each_part() -> None:
    assert licence_list(parts_of(found(), LOCK, [])).splitlines() == [
        "deb      libc6   2.36-9  LGPL-2.1",
        "generic  python  3.11.2  Python-2.0",
        "pypi     celery  5.7.0   not stated",
        "pypi     django  5.2.19  BSD-3-Clause",
    ]


def test_what_an_image_must_not_have() -> None:
    assert faults_of(found()) == []
    files = {"elevated": ["/usr/bin/su"], "unlinked": ["/usr/bin/ls"], "lost": ["celery/utils/static/__init__.py"]}
    bad = found(programs=["gcc"], modules=["pip"], user=[0, 0], **files)
    first_words = ["gcc", "Python", "/usr/bin/su", "/usr/bin/ls", "celery/utils/static/__init__.py", "The"]
    assert [fault.split(" ")[0] for fault in faults_of(bad)] == first_words


def test_the_probe_sees_this_computer() -> None:
    """It runs in an image with Debian's or another Python, without anything of this project."""
    ran = subprocess.run(
        [sys.executable, "-B", "-", "sh", "no-such-program"], input=PROBE, capture_output=True, text=True, check=True
    )
    seen = json.loads(ran.stdout)
    assert seen.keys() == found().keys()
    assert seen["programs"] == ["sh"]
    names = {each["name"].lower() for each in seen["packages"]}
    assert "django" in names
    assert seen["python"] == ".".join(map(str, sys.version_info[:3]))


def test_two_trees_differ_where_a_content_a_mode_or_a_link_does(tmp_path: Path) -> None:
    def tree() -> dict[str, Any]:
        command = [sys.executable, "-B", "-", str(tmp_path)]
        ran = subprocess.run(command, input=TREE, capture_output=True, text=True, check=True)
        seen: dict[str, Any] = json.loads(ran.stdout)
        return seen

    for name in ("same", "changed", "opened"):
        (tmp_path / name).write_text("one")
    (tmp_path / "link").symlink_to("same")
    before = tree()
    assert differing_files(before, tree()) == []
    (tmp_path / "changed").write_text("two")
    (tmp_path / "opened").chmod(0o777)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("changed")
    (tmp_path / "new").mkdir()
    assert differing_files(before, tree()) == [str(tmp_path / name) for name in ("changed", "link", "new", "opened")]

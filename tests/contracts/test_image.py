"""The Dockerfile and what builds and examines the image, without an engine."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from gateway.lib.build_info import BuildInfo
from scripts.image import MAX_BYTES, Failed, build_command, differing_layers, engine, label_faults, locked

pytestmark = pytest.mark.one_back_end
ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
STAGES = re.split(r"^FROM ", DOCKERFILE, flags=re.M)[1:]
LAST = STAGES[-1]
INFO = BuildInfo("1.2.3", "a" * 40, "0123456789ab")
DIGEST = "sha256:" + "0" * 64


def test_every_stage_is_made_from_the_one_base_and_the_last_from_nothing() -> None:
    assert [stage.split("\n")[0] for stage in STAGES] == [
        "${PYTHON_IMAGE} AS base",
        "base AS system",
        "base AS application",
        "scratch",
    ]


def test_nothing_runs_in_the_last_stage() -> None:
    """A command would leave times and files of its own, and would need a shell and its programs."""
    assert not re.findall(r"^(RUN|ADD) ", LAST, flags=re.M)
    assert all(
        "--from=" in line or line.endswith("/usr/local/bin/manage") for line in re.findall("^COPY .*", LAST, re.M)
    )


def test_the_image_is_the_user_that_its_files_are_made_for() -> None:
    [user] = re.findall(r"^USER (\d+):\1$", LAST, flags=re.M)
    script = (ROOT / "scripts" / "slim_system.sh").read_text()
    assert f"gateway:x:{user}:{user}:" in script
    assert f"chown -R {user}:{user} " in script
    assert f"--chown={user}:{user} /system/data /data" in LAST


def test_packages_come_from_the_lock_file_by_hash_and_none_is_built() -> None:
    [install] = re.findall(r"pip --python \S+ install (.*)", DOCKERFILE.replace("\\\n", ""))
    assert {"--require-hashes", "--no-deps", "--only-binary", ":all:", '"/tmp/$lock.lock"'} <= set(install.split())
    assert DOCKERFILE.count(" install ") == 1


def test_no_argument_or_variable_of_the_build_holds_a_secret() -> None:
    names = re.findall(r"^(?:ARG|ENV) (\w+)", DOCKERFILE, flags=re.M) + re.findall(
        r"^    (\w+)=", DOCKERFILE, flags=re.M
    )
    assert not [name for name in names if re.search("SECRET|PASSWORD|TOKEN|_KEY", name)]


@pytest.mark.parametrize(
    ("release", "image", "is_built"),
    [
        ("", "python:3.11-slim", True),
        ("", f"python:3.11-slim@{DIGEST}", True),
        ("1", f"python:3.11-slim@{DIGEST}", True),
        ("1", "python:3.11-slim", False),
        ("1", "python:3.11-slim@sha256:", False),
        ("1", "", False),
    ],
)
def test_a_release_is_refused_without_the_digest_of_its_base(release: str, image: str, is_built: bool) -> None:
    [check] = re.findall(r"^RUN (case .*? esac)$", DOCKERFILE, flags=re.M | re.S)
    environment = {"PATH": "/usr/bin:/bin", "RELEASE": release, "PYTHON_IMAGE": image}
    ran = subprocess.run(["sh", "-c", check.replace("\\\n", "")], env=environment, capture_output=True, text=True)
    assert (ran.returncode == 0) is is_built
    assert ("by digest" in ran.stderr) is not is_built


def test_the_build_sees_what_the_service_and_the_build_need_and_nothing_else() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert allowed == {
        *("gateway", "audit", "orgs", "billing", "oauth_ext", "credentials", "proxy", "templates", "locale"),
        *("manage.py", ".env.example", "requirements.lock", "requirements-aws.lock"),
        *("scripts", "scripts/collect_static.py", "scripts/slim_*.sh"),
        *("docs", "docs/guide", "docs/operations", "docs/install.md", "docs/log-shipping.md"),
        *("docs/many-processes.md", "docs/scaling.md"),
    }


# --- what slim_application.sh leaves ----------------------------------------------------------------------------------


def tree(folder: Path) -> dict[str, str]:
    """SHA-256 of each file."""
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


@pytest.fixture
def built(tmp_path: Path) -> tuple[Path, Path]:
    """A virtual environment and an application as they are before."""
    return _made(tmp_path / "one")


def _made(folder: Path) -> tuple[Path, Path]:
    venv, app = folder / "venv", folder / "app"
    packages = venv / "lib" / "python3.11" / "site-packages" / "pack"
    files = (
        *(packages / name for name in ("__init__.py", "core.py", "core.pyi", "fast.pyx", "fast.c")),
        *(packages / name for name in ("test/client.py", "tests/test_core.py", "static/pack/a.css")),
        packages / "utils" / "static" / "__init__.py",
        *(packages / "locale" / "de" / "LC_MESSAGES" / name for name in ("django.po", "django.mo")),
        *(packages / "locale" / name for name in ("__init__.py", "fr/formats.py", "fr/LC_MESSAGES/django.mo")),
        *(app / name for name in ("manage.py", "scripts/collect_static.py", "staticfiles/a.0123.css")),
        *(app / "gateway" / name for name in ("__init__.py", "static/css/a.css")),
    )
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"name = {file.name!r}\n")
    (venv / "bin").mkdir()
    (venv / "bin" / "python").symlink_to(sys.executable)
    return venv, app


def slim(venv: Path, app: Path) -> None:
    script = str(ROOT / "scripts" / "slim_application.sh")
    subprocess.run(["sh", script, str(venv), str(app)], check=True, timeout=60)


def test_the_image_keeps_what_a_service_reads(built: tuple[Path, Path]) -> None:
    venv, app = built
    slim(venv, app)
    packages = venv / "lib" / "python3.11" / "site-packages"
    kept = {name for name in tree(packages) if "__pycache__" not in name}
    modules = ("__init__.py", "core.py", "test/client.py", "utils/static/__init__.py", "locale/__init__.py")
    names = (*modules, "locale/de/LC_MESSAGES/django.mo")
    assert kept == {f"pack/{name}" for name in names}
    assert {name for name in tree(app) if "__pycache__" not in name} == {
        *("manage.py", "staticfiles/a.0123.css", "gateway/__init__.py")
    }


def test_the_image_has_the_words_of_every_language_of_the_pages() -> None:
    script = (ROOT / "scripts" / "slim_application.sh").read_text()
    assert set(re.findall(r"-not -name ([a-z]{2}) ", script.replace("\\\n", " "))) == dict(settings.LANGUAGES).keys()


def test_bytecode_is_there_and_depends_on_no_time(built: tuple[Path, Path], tmp_path: Path) -> None:
    """A read-only root keeps none. By their flags, PEP 552, these files are believed without a look at the source."""
    slim(*built)
    compiled = [*(built[0] / "lib").rglob("*.pyc")]
    assert {file.name.split(".")[0] for file in compiled} == {"__init__", "core", "client"}
    assert {file.read_bytes()[4:8] for file in compiled} == {b"\x01\x00\x00\x00"}
    first = tree(tmp_path / "one")
    shutil.rmtree(tmp_path / "one")
    slim(*_made(tmp_path / "one"))
    assert tree(tmp_path / "one") == first


# --- the command ------------------------------------------------------------------------------------------------------


def test_an_engine_builds_if_it_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of docker without a server is passed over."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Failed, match="Neither docker nor podman answers"):
        engine({})
    _program(tmp_path / "docker", "exit 1")
    _program(tmp_path / "podman", "exit 0")
    assert engine({}) == "podman"
    assert engine({"ENGINE": "nerdctl"}) == "nerdctl"
    _program(tmp_path / "docker", "exit 0")
    assert engine({}) == "docker"


def _program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def test_the_engine_is_told_the_labels_and_the_time_of_the_files() -> None:
    environ = {"PYTHON_IMAGE": f"python@{DIGEST}", "RELEASE": "1", "BUILD_OPTIONS": "--isolation=chroot"}
    podman = " ".join(build_command("podman", "gateway:1", INFO, 1_700_000_000, environ))
    docker = " ".join(build_command("docker", "gateway:1", INFO, 1_700_000_000, {}))
    for command in (podman, docker):
        assert f"VERSION=1.2.3 --build-arg REVISION={'a' * 40} --build-arg SCHEMA=0123456789ab" in command
    assert "--format docker --timestamp 1700000000" in podman
    assert f"--build-arg PYTHON_IMAGE=python@{DIGEST} --build-arg RELEASE=1 --isolation=chroot" in podman
    assert "SOURCE_DATE_EPOCH=1700000000" in docker
    assert "rewrite-timestamp=true" in docker
    assert "RELEASE" not in docker


def test_an_image_with_an_optional_part_has_its_lock_too() -> None:
    assert "boto3==" in locked({"EXTRAS": "aws"})
    assert "django==" in locked({"EXTRAS": "aws"})
    assert "boto3==" not in locked({})


LABELS = {
    "org.opencontainers.image.version": "1.2.3",
    "org.opencontainers.image.revision": "a" * 40,
    "gateway.schema": "0123456789ab",
}


def test_labels_and_size_are_judged() -> None:
    assert label_faults({"Config": {"Labels": LABELS}, "Size": MAX_BYTES}, INFO) == []
    unlabelled = label_faults({"Config": {"Labels": None}, "Size": 1}, INFO)
    assert [fault.split(" is not ")[0] for fault in unlabelled] == [f"The label {name}" for name in LABELS]
    [large] = label_faults({"Config": {"Labels": LABELS}, "Size": MAX_BYTES + 1}, INFO)
    assert "250,000,001 bytes" in large


def test_layers_of_two_builds_are_compared() -> None:
    def with_layers(*layers: str) -> dict[str, dict[str, list[str]]]:
        return {"RootFS": {"Layers": list(layers)}}

    assert differing_layers(with_layers("a", "b"), with_layers("a", "b")) == []
    assert differing_layers(with_layers("a", "b"), with_layers("a", "c")) == ["Layer 2 differs: b, c."]
    assert differing_layers(with_layers("a"), with_layers("a", "b")) == ["One build has 1 layers, the other 2."]

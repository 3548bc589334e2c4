"""Version, commit and schema of a build."""

from __future__ import annotations

from pathlib import Path

import pytest

import gateway
from gateway.lib import build_info

COMMIT, OTHER = "a" * 40, "b" * 40


def repository(root: Path, head: str, **files: str) -> None:
    (root / ".git" / "refs" / "heads").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text(f"{head}\n")
    for name, text in files.items():
        (root / ".git" / name.replace("__", "/").replace("_", "-")).write_text(text)


@pytest.mark.parametrize(
    ("head", "files"),
    [
        (COMMIT, {}),
        ("ref: refs/heads/main", {"refs__heads__main": f"{COMMIT}\n"}),
        ("ref: refs/heads/main", {"packed_refs": f"# pack-refs\n{OTHER} refs/heads/other\n{COMMIT} refs/heads/main\n"}),
    ],
)
def test_the_commit_is_that_of_the_checkout(tmp_path: Path, head: str, files: dict[str, str]) -> None:
    repository(tmp_path, head, **files)
    assert build_info.read_build_info(tmp_path, {}).commit == COMMIT
    # An image names the commit that it was built of.
    assert build_info.read_build_info(tmp_path, {"GATEWAY_COMMIT": OTHER}).commit == OTHER


def test_without_a_repository_the_commit_is_unknown(tmp_path: Path) -> None:
    assert build_info.read_build_info(tmp_path, {}).commit == build_info.UNKNOWN
    repository(tmp_path, "ref: refs/heads/gone", packed_refs="")
    assert build_info.read_build_info(tmp_path, {}).commit == build_info.UNKNOWN


def test_the_schema_changes_with_a_migration_and_with_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "orgs" / "migrations"
    folder.mkdir(parents=True)
    (folder / "0001_initial.py").write_text("")
    first = build_info.schema_of(tmp_path)
    (folder / "helpers.py").write_text("")
    assert build_info.schema_of(tmp_path) == first
    (folder / "0002_more.py").write_text("")
    assert build_info.schema_of(tmp_path) != first


def test_the_running_program_knows_itself() -> None:
    info = build_info.current()
    assert info.version == gateway.__version__
    assert len(info.schema) == 12
    # Every app with migrations counts, wherever it lies.
    assert info.schema != build_info.schema_of(build_info.ROOT / "gateway")
    assert build_info.build_arguments(info).endswith(f"--build-arg SCHEMA={info.schema}")

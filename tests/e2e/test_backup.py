"""`backup` and `restore` of the embedded default: beside writers, into an empty folder, killed in the middle."""

from __future__ import annotations

import json
import sqlite3
import stat
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.recovery import backup_file
from gateway.recovery.restore import MARK
from gateway.supervisor.folder import write_private
from gateway.supervisor.installation import command_environment, restore_environment
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, Operator, deployment
from tests.vendors.processes import ROOT

pytest_plugins = ("tests.e2e.fixtures",)
# The last step of a backup, and of a restore: a kill there is the latest one that may leave nothing.
KILLED = """
import os, signal, sys
from pathlib import Path
def die(*args, **kwargs): os.kill(os.getpid(), signal.SIGKILL)
os.link = die
Path.rename = die
sys.argv = ["manage.py", *sys.argv[1:]]
import manage
manage.main()
"""


@pytest.fixture(scope="module")
def file_template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Template]:
    """SQLite, whatever the back ends of the run are."""
    made = Template(tmp_path_factory.mktemp("template"), "")
    yield made
    made.remove()


@pytest.fixture(scope="module")
def installed(file_template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployment(file_template, tmp_path_factory.mktemp("installed") / "var") as made:
        made.environment.pop("REDIS_URL", None)
        yield made


@pytest.fixture(scope="module")
def operator(installed: Deployment) -> Iterator[Operator]:
    with installed.operator() as made:
        yield made


@pytest.fixture(scope="module")
def backup(installed: Deployment, operator: Operator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup that was made while organizations were created."""
    target = tmp_path_factory.mktemp("backups") / "backup.tar"
    operator.run("create_organization", name="Before")
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            operator.run("create_organization", name=f"during{(number := number + 1)}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        installed.manage("backup", str(target))
    finally:
        stop.set()
        writer.join()
    operator.run("create_organization", name="After")
    return target


def command(
    *arguments: str, environment: dict[str, str], program: str = "manage.py"
) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, program] if program == "manage.py" else [sys.executable, "-c", program]
    return subprocess.run([*words, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)


def restore(backup: Path, var: Path, program: str = "manage.py") -> subprocess.CompletedProcess[str]:
    return command("restore", str(backup), environment=restore_environment(var, {"PATH": "/usr/bin"}), program=program)


def names(var: Path) -> set[str]:
    with closing(sqlite3.connect(var / "gateway.sqlite3")) as database:
        return {name for (name,) in database.execute("SELECT name FROM orgs_organization")}


def left_over(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_restored_folder_is_the_installation_at_that_moment(
    installed: Deployment, backup: Path, tmp_path: Path
) -> None:
    var = tmp_path / "var"
    done = restore(backup, var)
    assert done.returncode == 0, done.stderr
    found = names(var)
    assert "Before" in found
    assert "After" not in found
    assert (var / "secrets.env").read_text() == (installed.folder / "secrets.env").read_text()
    assert {stat.S_IMODE(path.stat().st_mode) for path in [backup, *var.iterdir()]} == {0o600}
    assert stat.S_IMODE(var.stat().st_mode) == 0o700
    assert left_over(tmp_path) == {"var"}
    # The next command finds its keys there, and the printed line is one that works.
    at = json.loads((var / MARK).read_text())["restored_to"]
    assert f"after_restore --at {at}" in done.stdout
    environment = command_environment(var, {"PATH": "/usr/bin"})
    ended = command("after_restore", "--at", at, environment=environment)
    assert ended.returncode == 0, ended.stderr
    assert not (var / MARK).exists()


def test_a_folder_that_is_not_empty_is_refused(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "note").write_text("mine")
    done = restore(backup, tmp_path / "var")
    assert done.returncode == 1
    assert "is not empty" in done.stderr
    assert left_over(tmp_path / "var") == {"note"}


def test_an_empty_folder_is_taken(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    assert restore(backup, tmp_path / "var").returncode == 0
    assert "Before" in names(tmp_path / "var")


def test_a_restore_that_is_killed_leaves_no_folder_and_is_run_again(backup: Path, tmp_path: Path) -> None:
    var = tmp_path / "var"
    assert restore(backup, var, KILLED).returncode == -9
    assert not var.exists()
    assert left_over(tmp_path) > set()
    assert restore(backup, var).returncode == 0
    assert left_over(tmp_path) == {"var"}


def test_a_backup_that_is_killed_leaves_no_file_of_that_name(installed: Deployment, tmp_path: Path) -> None:
    target = tmp_path / "backup.tar"
    assert command("backup", str(target), environment=installed.environment, program=KILLED).returncode == -9
    assert not target.exists()
    assert len(left_over(tmp_path)) == 2
    installed.manage("backup", str(target))
    assert left_over(tmp_path) == {"backup.tar"}


def test_a_file_is_never_overwritten(installed: Deployment, tmp_path: Path) -> None:
    (tmp_path / "backup.tar").write_text("the last one")
    done = command("backup", str(tmp_path / "backup.tar"), environment=installed.environment)
    assert done.returncode == 1
    assert "exists already" in done.stderr
    assert (tmp_path / "backup.tar").read_text() == "the last one"
    assert left_over(tmp_path) == {"backup.tar"}


def damaged(backup: Path, tmp_path: Path) -> Path:
    content = bytearray(backup.read_bytes())
    content[len(content) // 2] ^= 1
    return written(tmp_path, bytes(content))


def cut(backup: Path, tmp_path: Path) -> Path:
    content = backup.read_bytes()
    return written(tmp_path, content[: len(content) // 2])


def foreign(backup: Path, tmp_path: Path) -> Path:
    return written(tmp_path, b"no archive at all" * 1000)


def newer(backup: Path, tmp_path: Path) -> Path:
    return rewritten(backup, tmp_path, lambda facts: facts["migrations"].append(["orgs", "9999_of_next_year"]))


def climbing(backup: Path, tmp_path: Path) -> Path:
    return rewritten(backup, tmp_path, lambda facts: facts["files"].update({"../climbed": {"bytes": 1, "sha256": ""}}))


def rewritten(backup: Path, tmp_path: Path, change: object) -> Path:
    assert callable(change)
    with tarfile.open(backup) as archive:
        archive.extractall(tmp_path / "content", filter="data")
    facts = json.loads((tmp_path / "content" / "manifest.json").read_text())
    change(facts)
    write_private(tmp_path / "content" / "manifest.json", json.dumps(facts))
    target = tmp_path / "changed.tar"
    with tarfile.open(target, "w") as archive:
        for name in [backup_file.MANIFEST, *sorted(left_over(tmp_path / "content") - {backup_file.MANIFEST})]:
            archive.add(tmp_path / "content" / name, name)
    return target


def written(tmp_path: Path, content: bytes) -> Path:
    (tmp_path / "changed.tar").write_bytes(content)
    return tmp_path / "changed.tar"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (damaged, "damaged"),
        (cut, "damaged"),
        (foreign, "damaged or not a backup"),
        (newer, "does not know (orgs.9999_of_next_year)"),
        (climbing, "list of files"),
    ],
)
def test_a_file_that_cannot_be_trusted_changes_nothing(
    backup: Path, tmp_path: Path, change: object, reason: str
) -> None:
    assert callable(change)
    done = restore(change(backup, tmp_path), tmp_path / "var")
    assert done.returncode == 1
    assert reason in done.stderr
    assert not (tmp_path / "var").exists()
    assert not (tmp_path / "climbed").exists()


@pytest.mark.parametrize("name", ["backup", "restore"])
def test_a_database_server_has_tools_of_its_own(tmp_path: Path, name: str) -> None:
    environment = restore_environment(tmp_path / "var", {"DATABASE_URL": "postgres://u:hidden@127.0.0.1:9/x"})
    done = command(name, str(tmp_path / "backup.tar"), environment=environment)
    assert done.returncode == 1
    assert "pg_dump" in done.stderr
    assert "docs/operations/backup.md" in done.stderr
    assert "hidden" not in done.stderr
    assert not (tmp_path / "backup.tar").exists()

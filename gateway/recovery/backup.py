"""Copies an installation of the embedded default into one file, beside the running service. docs/decisions/0084"""

from __future__ import annotations

import glob
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

import gateway
from gateway.lib import clock
from gateway.recovery import backup_file
from gateway.recovery.backup_file import DATABASE, Manifest
from gateway.supervisor.installation import FILE_NAME as VARIABLES
from gateway.supervisor.installation import read_start
from gateway.supervisor.secret_store import FILE_NAME as SECRETS

# Folders whose files belong to the installation. Queue, logs and counters are made anew.
_FOLDERS = ("demo-identity", "demo-vendor", "mail")


def make_backup(folder: Path, target: Path) -> Manifest:
    """Raises: OSError, also when `target` exists; sqlite3.Error; StartRefused."""
    if target.exists():
        raise FileExistsError(17, "exists already", str(target))
    _remove_leftovers(target)
    made_at = clock.rfc3339(clock.now())
    copy = target.with_name(f".{target.name}.{os.getpid()}.database")
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        _copy_database(Path(connection.settings_dict["NAME"]), copy)
        files = {DATABASE: copy, **_files(folder)}
        manifest = Manifest(
            version=gateway.__version__,
            made_at=made_at,
            migrations=sorted(MigrationRecorder(connection).applied_migrations()),
            withheld=list(read_start(folder).withheld),
            files={name: backup_file.facts_of(path) for name, path in files.items()},
        )
        backup_file.write(target, files, manifest)
    finally:
        copy.unlink(missing_ok=True)
    return manifest


def _remove_leftovers(target: Path) -> None:
    """Those of backups that were killed: they hold what a backup holds."""
    for path in target.parent.glob(f".{glob.escape(target.name)}.*"):
        number, _, kind = path.name.removeprefix(f".{target.name}.").partition(".")
        if kind in {"part", "database", "database-journal"} and number.isdigit() and not _is_running(int(number)):
            path.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _copy_database(source: Path, copy: Path) -> None:
    # All pages in one step: with a write-ahead log that is one snapshot, and writers go on meanwhile.
    with (
        closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True, timeout=20)) as original,
        closing(sqlite3.connect(copy)) as target,
    ):
        original.backup(target, pages=-1)
        target.execute("PRAGMA journal_mode=DELETE")  # one file, without a write-ahead log beside it


def _files(folder: Path) -> dict[str, Path]:
    names = [SECRETS, VARIABLES]
    for each in _FOLDERS:
        names += sorted(str(path.relative_to(folder)) for path in (folder / each).rglob("*") if path.is_file())
    return {name: folder / name for name in names if (folder / name).is_file()}

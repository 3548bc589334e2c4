"""Makes an installation from a backup, in a folder that gets its name when everything is proven. docs/decisions/0084"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from django.db.migrations.loader import MigrationLoader

from gateway.recovery import backup_file
from gateway.recovery.backup_file import DATABASE, Manifest, UnusableBackup
from gateway.supervisor.folder import write_private

# Says that `after_restore` has not run yet.
MARK = "restored.json"


class RestoreRefused(Exception):
    """The folder cannot be used. The text is a sentence."""


def restore_backup(file: Path, folder: Path) -> Manifest:
    """Make `folder`, which is empty or not there. A run that was killed leaves a folder beside it that the next one
    removes. Raises: RestoreRefused, UnusableBackup, OSError.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RestoreRefused(f"VAR={folder} is not empty. Name an empty folder; nothing was changed.")
    if folder.is_mount():
        raise RestoreRefused(f"VAR={folder} is a mount point. Name a folder below it.")
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(folder):
        draft = folder.with_name(f".{folder.name}.restoring")
        shutil.rmtree(draft, ignore_errors=True)  # of a run that was killed
        draft.mkdir(mode=0o700)
        try:
            manifest = _filled(file, draft)
            write_private(draft / MARK, json.dumps({"restored_to": manifest.made_at}) + "\n")
            backup_file.sync_folder(draft)
            draft.rename(folder)  # takes the place of an empty folder
            backup_file.sync_folder(folder.parent)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return manifest


def _filled(file: Path, draft: Path) -> Manifest:
    try:
        with tarfile.open(file, mode="r:") as archive:
            manifest = backup_file.read_manifest(archive)
            if strange := sorted(set(manifest.migrations) - _known_migrations()):
                raise UnusableBackup(
                    f"It was made by version {manifest.version}, whose database has migrations that this release does"
                    f" not know ({'.'.join(strange[0])}). Use that version or a later one."
                )
            backup_file.extract(archive, manifest, draft)
    except (tarfile.TarError, EOFError) as fault:
        raise UnusableBackup(f"It is damaged or not a backup ({type(fault).__name__}).") from None
    _check_database(draft / DATABASE)
    return manifest


def _known_migrations() -> set[tuple[str, str]]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    replaced = {part for migration in loader.disk_migrations.values() for part in migration.replaces}
    return set(loader.disk_migrations) | replaced


def _check_database(path: Path) -> None:
    try:
        with closing(sqlite3.connect(path)) as database:
            found = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as fault:
        found = str(fault)
    if found != "ok":
        raise UnusableBackup(f"Its database is damaged: {found}.")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One restore at a time; the kernel frees the lock of a killed one. Raises: RestoreRefused."""
    path = folder.with_name(f".{folder.name}.restoring.lock")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    except BlockingIOError:
        raise RestoreRefused(f"Another restore into {folder} is running.") from None
    finally:
        os.close(descriptor)

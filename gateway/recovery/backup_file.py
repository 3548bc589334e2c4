"""The file of a backup: a tar archive whose first member says which files follow, with their sizes and SHA-256.

manifest.json   {"format": 1, "version", "made_at", "migrations": [[app, name], …], "withheld": [name, …],
                 "files": {name: {"bytes", "sha256"}}}
gateway.sqlite3, secrets.env, …
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "gateway.sqlite3"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*){0,3}\Z", re.ASCII)
_MANIFEST_BYTES = 4 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024


class UnusableBackup(Exception):
    """The file is no backup, is damaged, or belongs to another release. The text is a sentence."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """`made_at`: RFC 3339, before the first byte was read. `withheld`: variables that are not in the files."""

    version: str
    made_at: str
    migrations: list[tuple[str, str]]
    withheld: list[str]
    files: dict[str, dict[str, Any]]


def write(target: Path, files: Mapping[str, Path], manifest: Manifest) -> None:
    """Write the archive beside `target` and give it its name when all of it is on the disk. Raises: OSError, also
    when `target` exists.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            with tarfile.open(fileobj=out, mode="w") as archive:
                _add(archive, MANIFEST, json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1).encode())
                for name, path in files.items():
                    facts = tarfile.TarInfo(name)
                    facts.size, facts.mode = int(manifest.files[name]["bytes"]), 0o600
                    with path.open("rb") as source:
                        archive.addfile(facts, source)
            out.flush()
            os.fsync(out.fileno())
        os.link(part, target)  # unlike a renamed file, it never takes the place of another
        sync_folder(target.parent)
    finally:
        part.unlink(missing_ok=True)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    facts = tarfile.TarInfo(name)
    facts.size, facts.mode = len(content), 0o600
    archive.addfile(facts, io.BytesIO(content))


def facts_of(path: Path) -> dict[str, Any]:
    digest = hashlib.sha256()
    with path.open("rb") as source:
        for chunk in _chunks(source):
            digest.update(chunk)
        return {"bytes": source.tell(), "sha256": digest.hexdigest()}


def read_manifest(archive: tarfile.TarFile) -> Manifest:
    """Raises: UnusableBackup."""
    first = archive.next()
    content = archive.extractfile(first) if first is not None and first.name == MANIFEST else None
    if content is None:
        raise UnusableBackup("It isn't a backup of this service.")
    try:
        facts = json.loads(content.read(_MANIFEST_BYTES))
        if facts.pop("format") != FORMAT:
            raise UnusableBackup("It was made by a release with another backup format.")
        facts["migrations"] = [(str(app), str(name)) for app, name in facts["migrations"]]
        manifest = Manifest(**facts)
        if DATABASE not in manifest.files or not all(_NAME.match(name) for name in manifest.files):
            raise UnusableBackup("Its list of files is not one that this release writes.")
    except (ValueError, KeyError, TypeError) as fault:
        raise UnusableBackup(f"Its list of files cannot be read ({type(fault).__name__}).") from None
    return manifest


def extract(archive: tarfile.TarFile, manifest: Manifest, folder: Path) -> None:
    """Write all files into `folder` and compare them with the manifest. Raises: UnusableBackup, OSError."""
    missing = set(manifest.files)
    while (member := archive.next()) is not None:
        content = archive.extractfile(member) if member.isreg() and member.name in missing else None
        if content is None:
            raise UnusableBackup(f"It holds {member.name[:100]!r}, which is not in its list of files.")
        missing.remove(member.name)
        path = folder / member.name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        digest, size = _written(content, path)
        if {"bytes": size, "sha256": digest} != manifest.files[member.name]:
            raise UnusableBackup(f"It is damaged: {member.name} differs from its digest.")
        sync_folder(path.parent)
    if missing:
        raise UnusableBackup(f"It is damaged: {min(missing)} is missing.")


def _written(content: IO[bytes], path: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        for chunk in _chunks(content):
            digest.update(chunk)
            size += out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest(), size


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK_BYTES):
        yield chunk


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

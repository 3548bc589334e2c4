"""The VAR folder: private, locked by one supervisor, with the logs of the last two starts."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gateway.supervisor.options import StartRefused

LOCK_NAME = "run.lock"
# Bytes read from a log's end.
LOG_TAIL_BYTES = 16_384


def make_private_folder(folder: Path) -> None:
    """Create the folder, or restrict one of ours that others can write to. Raises: StartRefused."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        # A sticky folder such as /tmp is shared on purpose and stays as it is; the files inside are private themselves.
        is_ours = status.st_uid == os.geteuid() and not status.st_mode & stat.S_ISVTX
        if is_ours and status.st_mode & 0o022:
            folder.chmod(0o700)
    except OSError as error:
        raise StartRefused(
            f"VAR={folder} cannot be used ({error.strerror}). Name another folder: make run VAR=/path/to/folder"
        ) from None


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold the folder's lock until the block or the process ends. Raises: StartRefused when it is held already."""
    descriptor = _open_private(folder / LOCK_NAME)
    with os.fdopen(descriptor, "r+") as file:
        try:
            # Two supervisors would write to one database. The kernel releases the lock when the process dies.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = file.read().strip()
            raise StartRefused(
                f"Already running on VAR={folder}{f' (process {owner})' if owner else ''}. "
                "Stop that one first, or use another folder and ports: make run VAR=./var2 PORT=8010 IDP_PORT=9410 "
                "VENDOR_PORT=9110"
            ) from None
        file.truncate()
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def write_private(path: Path, content: str) -> None:
    """Write `path` atomically, readable by its owner only."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def rotated_log(folder: Path, name: str) -> Path:
    """The path of a new log; the last start's log becomes `<name>.log.1`."""
    logs = folder / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)
    path = logs / f"{name}.log"
    if path.exists():
        path.replace(logs / f"{name}.log.1")
    os.close(_open_private(path))
    return path


def last_lines(path: Path, count: int) -> list[str]:
    """The last `count` non-blank lines of a log."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    return [line for line in text.splitlines() if line.strip()][-count:]


def _open_private(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StartRefused(f"{path} cannot be written ({error.strerror}). Check the rights on VAR.") from None

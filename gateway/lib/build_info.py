"""The build that runs: version, commit and schema. `python -m gateway.lib.build_info` prints them for `docker build`.

No Django: programs ask that load no settings.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import gateway

ROOT = Path(__file__).resolve().parents[2]
UNKNOWN = "unknown"
_COMMIT_VARIABLE = "GATEWAY_COMMIT"  # an image has no repository


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """`commit`: 40 hexadecimal digits or `unknown`. `schema`: equal for builds with the same migrations."""

    version: str
    commit: str
    schema: str

    def labels(self) -> dict[str, str]:
        return asdict(self)


@cache
def current() -> BuildInfo:
    """Of the running program."""
    return read_build_info(ROOT, os.environ)


def read_build_info(root: Path, environ: Mapping[str, str]) -> BuildInfo:
    """Of the program whose files are in `root`."""
    commit = environ.get(_COMMIT_VARIABLE) or _checked_out(root / ".git")
    return BuildInfo(gateway.__version__, commit, schema_of(root))


def schema_of(root: Path) -> str:
    """Twelve hexadecimal digits of the names of all migrations."""
    names = sorted(
        file.relative_to(root).as_posix()
        for pattern in ("*/migrations/0*.py", "*/*/migrations/0*.py", "*/djstripe_migrations/0*.py")
        for file in root.glob(pattern)
    )
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]


def build_arguments(info: BuildInfo) -> str:
    """Pure: the arguments of `docker build` that label the image."""
    return f"--build-arg VERSION={info.version} --build-arg REVISION={info.commit} --build-arg SCHEMA={info.schema}"


def _checked_out(repository: Path) -> str:
    """The commit of a repository's HEAD."""
    try:
        head = (repository / "HEAD").read_text().strip()
        name = head.removeprefix("ref: ")
        if name == head:
            return head
        if (repository / name).is_file():
            return (repository / name).read_text().strip()
        packed = (repository / "packed-refs").read_text().splitlines()
    except OSError:
        return UNKNOWN
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), UNKNOWN)


if __name__ == "__main__":
    sys.stdout.write(build_arguments(current()) + "\n")

"""`python -m gateway.supervisor.manage COMMAND …`: a management command on the installation in VAR. Contract: 6"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from gateway.supervisor.installation import command_environment, restore_environment
from gateway.supervisor.options import StartRefused

ROOT = Path(__file__).resolve().parents[2]
USAGE = "Name a command: make manage ARGS=\"create_org 'Acme' alice@example.com\". ARGS=help lists them."


def command_words(arguments: list[str], environ: Mapping[str, str]) -> list[str]:
    """Pure: the command's words, from the command line or from ARGS with shell quoting. Raises: StartRefused."""
    try:
        words = arguments or shlex.split(environ.get("ARGS", ""))
    except ValueError as error:
        raise StartRefused(f"ARGS cannot be read ({error}). Quote it as in a shell.") from None
    if not words:
        raise StartRefused(USAGE)
    return words


def main() -> int:
    """Replace this process with manage.py, whose exit code and signals become its own."""
    try:
        words = command_words(sys.argv[1:], os.environ)
        folder = (Path.cwd() / Path(os.environ.get("VAR") or "var").expanduser()).resolve()
        environment = (restore_environment if words[0] == "restore" else command_environment)(folder, os.environ)
    except StartRefused as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 2
    os.umask(0o077)
    return os.execve(sys.executable, [sys.executable, str(ROOT / "manage.py"), *words], environment)  # noqa: S606


if __name__ == "__main__":
    sys.exit(main())

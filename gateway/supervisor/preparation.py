"""Runs as a process of its own before the service: migrations, the vendor catalog, the demo organization.

One process for all of it: Django's start-up is paid once. Every finished step is a JSON line on standard output,
`{"step", "detail", "seconds"}`; a failure is `{"error", "see_log"}` and exit code 1. All else goes to the log.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO


class PreparationFailed(Exception):
    """A step cannot be done; the message is one sentence."""


class Progress:
    """Writes the JSON lines that the supervisor reads."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def run(self, step: str, work: Callable[[], str]) -> None:
        """Do one step and report what it says of itself."""
        started = time.monotonic()
        detail = work()
        self._write({"step": step, "detail": detail, "seconds": round(time.monotonic() - started, 2)})

    def fail(self, sentence: str, *, see_log: bool = False) -> None:
        """Report why the preparation ends here, and whether the log says more."""
        self._write({"error": sentence, "see_log": see_log})

    def _write(self, line: dict[str, object]) -> None:
        self._stream.write(json.dumps(line) + "\n")
        self._stream.flush()


def load_settings() -> None:
    """Django is set up. Raises: PreparationFailed with the sentence of a setting that is missing or weak."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            import django

            django.setup()
    except SystemExit:
        raise PreparationFailed(one_line(said.getvalue()) or "Cannot start: a setting was refused.") from None
    sys.stderr.write(said.getvalue())


def note_variables() -> None:
    """VAR says which variables this start was given, for `make manage`. Raises: PreparationFailed."""
    from gateway.settings import env
    from gateway.supervisor.installation import note_start
    from gateway.supervisor.options import StartRefused

    try:
        note_start(Path(os.environ["VAR"]), os.environ, env.asked)
    except (OSError, StartRefused) as error:
        raise PreparationFailed(f"VAR cannot be written: {one_line(str(error))}") from None


def migrate_database() -> str:
    """The database has every table. Says how much there was to do."""
    from django.core.management import call_command
    from django.db import DatabaseError, connection
    from django.db.migrations.executor import MigrationExecutor

    try:
        executor = MigrationExecutor(connection)
        pending = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
        if pending:
            call_command("migrate", interactive=False, verbosity=0, stdout=sys.stderr, stderr=sys.stderr)
    except DatabaseError as error:
        traceback.print_exc()
        raise PreparationFailed(
            f"The {connection.display_name} database cannot be used: {one_line(str(error))}. Check DATABASE_URL."
        ) from None
    return f"{connection.display_name}, {f'{pending} migrations applied' if pending else 'up to date'}"


def make_queue_folders() -> None:
    """The folders of the embedded queue exist; with Redis there are none to make."""
    from gateway.settings import workers

    options = workers.CELERY_BROKER_TRANSPORT_OPTIONS
    for key in ("data_folder_in", "data_folder_out", "control_folder"):
        if folder := options.get(key):
            Path(str(folder)).mkdir(mode=0o700, parents=True, exist_ok=True)


def load_catalogs(files: list[Path]) -> str:
    """The shipped catalog and then `files`, in order, are loaded."""
    from django.core.management import call_command

    call_command("load_vendors", stdout=sys.stderr, stderr=sys.stderr)
    for file in files:
        call_command("load_vendors", str(file), stdout=sys.stderr, stderr=sys.stderr)
    return "loaded" if not files else f"loaded, with {', '.join(file.name for file in files)}"


def seed_demo(seed_file: Path) -> str:
    """The demo organization exists and `seed_file` holds its keys of this start."""
    from django.core.management import call_command

    call_command("seed_demo", ready_file=str(seed_file), stdout=sys.stderr, stderr=sys.stderr)
    return "ready, with a new agent key"


def one_line(text: str) -> str:
    """Pure: a message without its line breaks."""
    return " ".join(text.split())


def first_of(text: str) -> str:
    """Pure: the first line of a message, and how many more there are."""
    lines = [one_line(line) for line in text.splitlines() if line.strip()] or ["no reason was given"]
    return lines[0] if len(lines) == 1 else f"{lines[0]} (and {len(lines) - 1} more)"


def prepare(arguments: argparse.Namespace, progress: Progress) -> None:
    """Every step in order. Raises: PreparationFailed."""
    from django.core.management.base import CommandError, SystemCheckError

    load_settings()
    note_variables()
    make_queue_folders()
    try:
        progress.run("Database", migrate_database)
        progress.run("Vendor catalog", lambda: load_catalogs(arguments.catalog))
        if arguments.seed_file:
            progress.run("Demo", lambda: seed_demo(arguments.seed_file))
    except SystemCheckError as error:
        traceback.print_exc()
        raise PreparationFailed(f"The settings did not pass the checks: {one_line(str(error))}") from None
    except CommandError as error:
        raise PreparationFailed(first_of(str(error))) from None


def main() -> int:
    """Prepare; the exit code says whether the service may start."""
    parser = argparse.ArgumentParser(prog="python -m gateway.supervisor.preparation")
    parser.add_argument("--catalog", type=Path, action="append", default=[], help="a catalog file; may be given again")
    parser.add_argument("--seed-file", type=Path, help="where the demo organization's keys are written")
    progress = Progress(sys.stdout)
    try:
        prepare(parser.parse_args(), progress)
    except PreparationFailed as failure:
        progress.fail(str(failure))
        return 1
    except Exception as error:
        traceback.print_exc()
        progress.fail(f"The preparation failed: {type(error).__name__}: {one_line(str(error))[:300]}", see_log=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

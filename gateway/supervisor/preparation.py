"""Runs before the service, in one process so that Django starts once: migrations, vendor catalog, demo organization.

Each finished step is a JSON line `{"step", "detail", "seconds"}` on standard output; a failure is
`{"error", "see_log"}` with exit code 1. All other output goes to the log.
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

# The demo's vendor starts beside the preparation.
VENDORS_START_WITHIN_S = 5.0


class PreparationFailed(Exception):
    """A step failed; the message is one sentence."""


class Progress:
    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def run(self, step: str, work: Callable[[], str]) -> None:
        started = time.monotonic()
        detail = work()
        self._write({"step": step, "detail": detail, "seconds": round(time.monotonic() - started, 2)})

    def fail(self, sentence: str, *, see_log: bool = False) -> None:
        """Report a failure; `see_log`: the log has more."""
        self._write({"error": sentence, "see_log": see_log})

    def _write(self, line: dict[str, object]) -> None:
        self._stream.write(json.dumps(line) + "\n")
        self._stream.flush()


def load_settings() -> None:
    """Set Django up. Raises: PreparationFailed with the message of a missing or weak setting."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            import django

            django.setup()
    except SystemExit:
        raise PreparationFailed(one_line(said.getvalue()) or "Cannot start: a setting was refused.") from None
    sys.stderr.write(said.getvalue())


def record_variables() -> None:
    """Store this start's variables for `make manage`. Raises: PreparationFailed."""
    from gateway.settings import env
    from gateway.supervisor.installation import record_start
    from gateway.supervisor.options import StartRefused

    try:
        record_start(Path(os.environ["VAR"]), os.environ, env.names_read)
    except (OSError, StartRefused) as error:
        raise PreparationFailed(f"VAR cannot be written: {one_line(str(error))}") from None


def migrate_database() -> str:
    """Apply the migrations; returns how many."""
    from django.core.management import call_command
    from django.db import DatabaseError, connection
    from django.db.migrations.executor import MigrationExecutor

    try:
        executor = MigrationExecutor(connection)
        pending = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
        if pending:
            call_command("migrate", interactive=False, verbosity=0, stdout=sys.stderr, stderr=sys.stderr)
        else:
            executor.check_replacements()  # records a squashed migration whose parts were all applied
    except DatabaseError as error:
        traceback.print_exc()
        raise PreparationFailed(
            f"The {connection.display_name} database cannot be used: {one_line(str(error))}. Check DATABASE_URL."
        ) from None
    return f"{connection.display_name}, {f'{pending} migrations applied' if pending else 'up to date'}"


def make_queue_folders() -> None:
    from gateway.settings import workers

    # With Redis the options name no folders.
    options = workers.CELERY_BROKER_TRANSPORT_OPTIONS
    for key in ("data_folder_in", "data_folder_out", "control_folder"):
        if folder := options.get(key):
            Path(str(folder)).mkdir(mode=0o700, parents=True, exist_ok=True)


def load_catalogs(files: list[Path]) -> str:
    """Load the shipped catalog, then `files` in order."""
    from django.core.management import call_command

    call_command("load_vendors", stdout=sys.stderr, stderr=sys.stderr)
    for file in files:
        call_command("load_vendors", str(file), stdout=sys.stderr, stderr=sys.stderr)
    return "loaded" if not files else f"loaded, with {', '.join(file.name for file in files)}"


def seed_demo(seed_file: Path) -> str:
    from django.core.management import call_command

    # `seed_file` gets the agent key and client secret of this start.
    call_command(
        "seed_demo", ready_file=str(seed_file), wait=VENDORS_START_WITHIN_S, stdout=sys.stderr, stderr=sys.stderr
    )
    return "ready, with a new agent key"


def one_line(text: str) -> str:
    return " ".join(text.split())


def first_of(text: str) -> str:
    """Pure: the first line of a message, and the number of further lines."""
    lines = [one_line(line) for line in text.splitlines() if line.strip()] or ["no reason was given"]
    return lines[0] if len(lines) == 1 else f"{lines[0]} (and {len(lines) - 1} more)"


def prepare(arguments: argparse.Namespace, progress: Progress) -> None:
    """Run all steps in order. Raises: PreparationFailed."""
    from django.core.management.base import CommandError, SystemCheckError

    load_settings()
    record_variables()
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
    """Exit code 0 if the service may start."""
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

"""`python -m tests.faults.matrix [--rounds 10] [--only WORDS]`: every row of the fault matrix on servers of its own.

PostgreSQL, Redis, web, worker, schedule and vendors are started here and broken in each way, while clients call. After
each row their history is compared with the request log. The exit code is 1 when a row is not as documented.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

from tests.fakes.postgresql_server import binaries  # noqa: E402
from tests.fakes.redis_server import is_installed  # noqa: E402
from tests.faults import matrix_beside, matrix_more, matrix_servers, matrix_vendor  # noqa: E402
from tests.faults.history import Verdict  # noqa: E402
from tests.faults.matrix_stage import Stage, stage  # noqa: E402
from tests.faults.matrix_table import ROWS, Row  # noqa: E402

MODULES = (matrix_vendor, matrix_servers, matrix_beside, matrix_more)  # each enters its rows when it is imported


def play(on: Stage, row: Row) -> tuple[Verdict, list[str]]:
    """The comparison after a row, and its faults."""
    faults: list[str] = []
    try:
        row.play(on)
        on.serves_within(30.0)
    except Exception:
        faults.append(traceback.format_exc(limit=-3))
    verdict = on.history.compare(on.logged())
    return verdict, faults + list(verdict.problems)


def run_round(rows: list[Row], counts: Counter[str]) -> list[str]:
    """All rows on one stage; returns the names of those that failed."""
    programs = binaries()
    assert programs is not None
    failed = []
    with tempfile.TemporaryDirectory(prefix="fault-matrix-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with stage(folder, programs) as on:
            for number, row in enumerate(rows, 1):
                began_s = time.monotonic()
                verdict, faults = play(on, row)
                took_s = time.monotonic() - began_s
                word = "FAILED" if faults else "ok"
                say(f"{number:2} {word:6} {took_s:5.1f} s  {row.name}: {row.expected}  ({verdict})")
                for fault in faults[:20]:
                    say(f"          {fault}")
                failed += [row.name] if faults else []
            counts.update(asked=verdict.asked, answered=verdict.answered, rows=verdict.rows)
            if failed:
                say(f"the logs of this round: {kept_logs(folder)}")
    return failed


def kept_logs(folder: Path) -> Path:
    """A folder that outlives the round, with the logs of its processes."""
    kept = Path(tempfile.mkdtemp(prefix="fault-logs-"))
    for log in folder.rglob("*.log"):
        shutil.copy2(log, kept / "-".join(log.relative_to(folder).parts))
    return kept


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Play the rounds and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", help="rows whose name has these words")
    options = parser.parse_args()
    if binaries() is None or not is_installed():
        sys.stderr.write("Needs redis-server, and PostgreSQL's programs in /usr/lib/postgresql.\n")
        return 2
    rows = [row for row in ROWS if options.only in row.name]
    counts, failed, began_s = Counter[str](), list[str](), time.monotonic()
    for number in range(1, options.rounds + 1):
        say(f"round {number} of {options.rounds}")
        failed += run_round(rows, counts)
    took_s = time.monotonic() - began_s
    say(f"{len(rows)} rows, {options.rounds} rounds, {len(failed)} failed in {took_s:.0f} s; {dict(counts)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

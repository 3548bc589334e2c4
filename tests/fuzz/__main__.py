"""`python -m tests.fuzz [INPUTS] [SEED]`: random requests through the whole service; prints counts by kind and status.

The exit code is 1 when an answer is not documented, a request has no end, or memory grows. They run on PostgreSQL and
Redis where TEST_DATABASE_URL and TEST_REDIS_URL (or DATABASE_URL and REDIS_URL) name them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from tests.fuzz.memory import use_one_arena

DEFAULT_INPUTS = "180000"


def main(arguments: list[str]) -> int:
    """Run the test of this folder with so many inputs, then print its report."""
    if len(arguments) > 2 or not all(argument.isdecimal() for argument in arguments):
        sys.stderr.write("Usage: python -m tests.fuzz [INPUTS] [SEED]\n")
        return 2
    for name in ("DATABASE_URL", "REDIS_URL"):
        if value := os.environ.get(f"TEST_{name}"):
            os.environ[name] = value
    use_one_arena()  # before the first thread
    inputs, seed = [*arguments, *(DEFAULT_INPUTS, "2026")[len(arguments) :]]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        report = Path(folder) / "report"
        os.environ.update(FUZZ_INPUTS=inputs, FUZZ_SEED=seed, FUZZ_REPORT=str(report))
        options = ["-q", "--no-header", "--tb=no", "-p", "no:schemathesis", "-p", "no:logging", "-s"]
        code = pytest.main(["tests/fuzz", *options])
        sys.stdout.write(report.read_text() if report.exists() else "There is no report.\n")
    return int(code != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

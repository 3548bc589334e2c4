"""Runs the property tests on random examples, round after round, until the time is over or one fails.

`python scripts/properties.py [SECONDS]` (600 by default). A round draws about ten times as many examples as the suite
does, with a seed of its own. Failing examples stay in .hypothesis/examples and are tried first in the next round.
Exit code 1 names the seed of the round that failed.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_SECONDS = 600
PYTEST = (sys.executable, "-m", "pytest", "tests", "--ignore=tests/browser", "-m", "hypothesis", "-q", "-n", "2")
# The suite's plugin for generated requests takes a second to load in each process, and no fixture of it is used.
OPTIONS = ("-p", "no:schemathesis", "--no-header", "--hypothesis-profile=search")


def play_round(seed: int) -> tuple[int, str]:
    """The exit code of one round, and its output."""
    command = [*PYTEST, *OPTIONS, f"--hypothesis-seed={seed}"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def main(arguments: list[str]) -> int:
    """Play rounds until the time is over."""
    if len(arguments) > 1 or not all(argument.isdigit() for argument in arguments):
        print("Usage: properties.py [SECONDS]", file=sys.stderr)
        return 2
    seconds = int(arguments[0]) if arguments else DEFAULT_SECONDS
    started, rounds = time.monotonic(), 0
    while rounds == 0 or time.monotonic() - started < seconds:
        rounds += 1
        seed = secrets.randbits(32)
        code, output = play_round(seed)
        if code:
            print(f"{output}\nRound {rounds} failed. Again: --hypothesis-seed={seed}", flush=True)
            return 1
        summary = output.strip().rpartition("\n")[2].strip("= ")
        print(f"round {rounds}, seed {seed}: {summary} ({time.monotonic() - started:.0f} of {seconds} s)", flush=True)
    print(f"{rounds} rounds without a failure")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)

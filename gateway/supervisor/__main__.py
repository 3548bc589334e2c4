"""`python -m gateway.supervisor`: the program that `make run` starts inside the virtual environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gateway.supervisor.options import StartRefused, read_options
from gateway.supervisor.run import run
from gateway.supervisor.terminal import Terminal


def main() -> int:
    """Run until stopped. Exit code 2 for a refused start, with a one-line reason."""
    try:
        return run(read_options(os.environ, Path.cwd()), os.environ, Terminal(sys.stdout))
    except StartRefused as refusal:
        Terminal(sys.stderr).problem(str(refusal))
        return 2


if __name__ == "__main__":
    sys.exit(main())

"""One run of the service: lock the folder, start, watch, stop."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from gateway.supervisor.folder import locked_folder, make_private_folder
from gateway.supervisor.options import Options
from gateway.supervisor.ports import require_free_ports
from gateway.supervisor.processes import Guarded
from gateway.supervisor.signals import Signals
from gateway.supervisor.supervised_run import READY_NAME, RunFailed, Stopped, SupervisedRun
from gateway.supervisor.terminal import Terminal

ROOT = Path(__file__).resolve().parent.parent.parent


def run(options: Options, environ: Mapping[str, str], terminal: Terminal) -> int:
    """Serve until a stop signal (returns 0) or until a program cannot be kept running (1). Raises: StartRefused.
    Contract: 1
    """
    started_at_s = time.monotonic()
    os.umask(0o077)
    make_private_folder(options.var)
    with locked_folder(options.var), Signals() as signals, Guarded(ROOT) as guarded:
        require_free_ports(options.host, options.required_ports())
        # The last run's ready.json holds keys that are no longer valid.
        (options.var / READY_NAME).unlink(missing_ok=True)
        supervised = SupervisedRun(options, environ, terminal, signals, guarded)
        try:
            supervised.start(started_at_s)
            supervised.watch()
        except Stopped:
            terminal.line("\nStopping...")
        except RunFailed as failure:
            terminal.problem(str(failure))
            for line in failure.lines:
                terminal.line(f"    {line}")
            return 1
        finally:
            supervised.stop()
        terminal.line("Stopped.")
        return 0

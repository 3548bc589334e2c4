"""The hourly limit of tool calls at its specified size, counted by eight processes at once. Spec: §8

That the three routes share it is asked in tests/api/proxy, that servers share it in tests/e2e/test_two_processes.py.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

from django.conf import settings

from gateway.coordination import backend

ROOT = Path(__file__).resolve().parents[3]
WORKERS = 8


def test_of_5008_calls_by_eight_workers_exactly_5000_pass() -> None:
    assert (settings.TOOL_CALLS.limit, settings.TOOL_CALLS.window_s) == (5_000, 3_600)
    subject = f"svc:{uuid.uuid4()}:svc_robot"
    command = [sys.executable, "-m", "tests.api.limits.tool_calls", subject, "626"]
    workers = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(WORKERS)
    ]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        said = []
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        for worker in workers:
            out, _ = worker.communicate(timeout=300)
            said.append(int(out))
    finally:
        for worker in workers:
            worker.kill()
            worker.wait(60)
    assert sum(said) == 5_000, said
    over = backend.current().hit(settings.TOOL_CALLS, subject)
    assert not over.allowed
    assert 0 < over.retry_after_s <= 3_600 + 60

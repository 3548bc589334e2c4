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
    command = [sys.executable, "-m", "tests.api.limits.tool_calls", subject, str(WORKERS), "626"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    said = [int(each) for each in done.stdout.split()]
    assert len(said) == WORKERS
    assert sum(said) == 5_000, said
    over = backend.current().hit(settings.TOOL_CALLS, subject)
    assert not over.allowed
    assert 0 < over.retry_after_s <= 3_600 + 60

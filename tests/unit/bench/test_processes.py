"""Processes of a run: served as the gateway is, without the caller's secrets, bounded, and ended with the run."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from bench import processes
from bench.processes import BenchFailed, Processes, inherited_environment, web_server
from gateway.supervisor.options import read_options
from gateway.supervisor.services import web_command

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_the_server_is_started_as_the_gateway_is(tmp_path: Path) -> None:
    options = read_options({"PORT": "8123"}, tmp_path)
    assert web_server("gateway.asgi:application", 8123) == web_command(options)


def test_a_deployments_variables_do_not_reach_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://production/db")
    monkeypatch.setenv("STRIPE_SECRET_KEY", "sk_live_1")
    monkeypatch.setenv("PATH", "/usr/bin")
    found = inherited_environment()
    assert found["PATH"] == "/usr/bin"
    assert not {"DATABASE_URL", "STRIPE_SECRET_KEY"} & found.keys()


def test_everything_is_ended_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "STOP_TIMEOUT_S", 0.2)
    pids: list[int] = []

    def run_that_fails() -> None:
        with Processes(tmp_path, tmp_path) as started:
            stubborn = started.start("stubborn", [sys.executable, "-c", STUBBORN], talks=True)
            assert stubborn.read_line(timeout_s=10) == b"up\n"
            willing = started.start("willing", [sys.executable, "-c", "import time; time.sleep(60)"])
            pids.extend([stubborn.pid, willing.pid])
            raise KeyError

    with pytest.raises(KeyError):
        run_that_fails()
    assert len(pids) == 2
    assert all(is_gone(pid) for pid in pids)


def test_what_a_process_leaves_in_its_group_is_ended_too(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); print(child.pid, flush=True)"
    )
    with Processes(tmp_path, tmp_path) as started:
        parent = started.start("parent", [sys.executable, "-c", program], talks=True)
        child = int(parent.read_line(timeout_s=10))
        parent.wait(timeout_s=10)
    deadline_s = time.monotonic() + 5
    while not is_gone(child) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert is_gone(child)


def test_reading_is_bounded(tmp_path: Path) -> None:
    with Processes(tmp_path, tmp_path) as started:
        silent = started.start("silent", [sys.executable, "-c", "import time; time.sleep(60)"], talks=True)
        with pytest.raises(BenchFailed, match="silent said nothing"):
            silent.read_line(timeout_s=0.1)
        with pytest.raises(BenchFailed, match="did not end"):
            silent.wait(timeout_s=0.1)


def test_a_program_that_fails_is_reported_with_its_log(tmp_path: Path) -> None:
    with Processes(tmp_path, tmp_path) as started:
        failing = started.start("failing", [sys.executable, "-c", "raise SystemExit('no such thing')"], talks=True)
        with pytest.raises(BenchFailed, match="no such thing"):
            failing.read_line(timeout_s=10)
        with pytest.raises(BenchFailed, match="exit code 1"):
            failing.wait(timeout_s=10)


def test_a_process_is_pinned_where_the_system_can(tmp_path: Path) -> None:
    can_pin = hasattr(os, "sched_getaffinity")
    core = min(os.sched_getaffinity(0)) if can_pin else 0
    program = f"import os; print(sorted(os.sched_getaffinity(0)) if {can_pin} else [{core}], flush=True)"
    with Processes(tmp_path, tmp_path) as started:
        pinned = started.start("pinned", [sys.executable, "-c", program], cores={core}, talks=True)
        assert pinned.read_line(timeout_s=10) == f"[{core}]\n".encode()

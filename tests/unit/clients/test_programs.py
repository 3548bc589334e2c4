"""Client programs are run for a bounded time, with what they said kept; and nothing is left out without a reason."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tests.clients import programs

SLEEPS = "import time; print('started', flush=True); time.sleep(60)"
REPORTS = "import json, os, sys; print('before'); print(json.dumps({'email': os.environ['BROWSER_EMAIL']}))"


def run(tmp_path: Path, code: str, deadline_s: float = 20.0) -> programs.Finished:
    environment = programs.environment(tmp_path, "alice@example.com", {"MORE": "1"})
    return programs.run((sys.executable, "-c", code), environment, deadline_s)


def test_the_last_line_is_the_report(tmp_path: Path) -> None:
    assert run(tmp_path, REPORTS).report() == {"email": "alice@example.com"}


def test_what_went_wrong_is_shown(tmp_path: Path) -> None:
    finished = run(tmp_path, "import sys; print('half'); sys.exit('the reason')")
    assert finished.exit_code == 1
    with pytest.raises(AssertionError, match=r"(?s)ended with 1.*half.*the reason"):
        finished.report()


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    environment = programs.environment(tmp_path, "alice@example.com")
    with programs.started((sys.executable, "-c", SLEEPS), environment) as running:
        assert running.wait_for("(started)") == "started"
        with pytest.raises(AssertionError, match=r"(?s)not done after 0 s.*started"):
            running.finished(deadline_s=0.2)
    assert running.process.poll() is not None


def test_what_is_waited_for_and_never_comes_is_an_error(tmp_path: Path) -> None:
    environment = programs.environment(tmp_path, "alice@example.com")
    with (
        programs.started((sys.executable, "-c", "print('other')"), environment) as running,
        pytest.raises(AssertionError, match=r"(?s)ended with 0.*other"),
    ):
        running.wait_for("(never)")


def test_a_program_gets_a_home_and_a_browser_and_none_of_our_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://somewhere")
    found = programs.environment(tmp_path, "alice@example.com")
    assert found["HOME"] == str(tmp_path)
    assert found["PATH"].split(os.pathsep)[0] == str(programs.STAND_INS)
    assert os.access(found["BROWSER"], os.X_OK)
    assert "DATABASE_URL" not in found


@pytest.mark.parametrize(
    ("has_node", "has_modules", "is_reason"), [(False, False, True), (True, True, False), (False, True, False)]
)
def test_only_a_machine_without_node_goes_without_its_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_node: bool, has_modules: bool, is_reason: bool
) -> None:
    monkeypatch.setattr(programs, "node", lambda: "/usr/bin/node" if has_node else None)
    monkeypatch.setattr(programs, "MODULES", tmp_path if has_modules else tmp_path / "absent")
    monkeypatch.delenv(programs.NEEDS_NODE, raising=False)
    ended = pytest.skip.Exception if is_reason else AssertionError
    with pytest.raises(ended, match=r"Node\.js"):
        programs.skip_without_node()


@pytest.mark.parametrize(
    ("has_node", "newer", "machine", "is_reason"),
    [
        (True, "/newer/node", "x86_64", False),
        (True, None, "x86_64", False),
        (True, None, "aarch64", True),
        (False, None, "x86_64", True),
    ],
)
def test_only_where_none_can_be_installed_is_there_no_newer_node(
    monkeypatch: pytest.MonkeyPatch, has_node: bool, newer: str | None, machine: str, is_reason: bool
) -> None:
    monkeypatch.setattr(programs, "node", lambda: "/usr/bin/node" if has_node else None)
    monkeypatch.setattr(programs, "newer_node", lambda: newer)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv(programs.NEEDS_NODE, raising=False)
    with pytest.raises(pytest.skip.Exception if is_reason else AssertionError):
        programs.skip_without_newer_node()


@pytest.mark.parametrize("skip", [programs.skip_without_node, programs.skip_without_newer_node])
def test_where_all_tests_have_to_run_none_goes_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skip: Callable[[], NoReturn]
) -> None:
    monkeypatch.setattr(programs, "node", lambda: None)
    monkeypatch.setattr(programs, "newer_node", lambda: None)
    monkeypatch.setattr(programs, "MODULES", tmp_path / "absent")
    monkeypatch.setenv(programs.NEEDS_NODE, "1")
    with pytest.raises(AssertionError, match=r"no Node\.js.*TESTS_NEED_NODE is set"):
        skip()

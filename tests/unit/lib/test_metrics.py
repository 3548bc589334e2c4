"""The figures of several real processes in one answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit.shipping.platforms.registry import PLATFORMS
from gateway.lib.metrics import figures, names, process_file
from gateway.lib.metrics.process_file import ProcessFile, read_all, remove_ended
from tests.factories.figures import samples_of, scraped, value_of

pytestmark = pytest.mark.one_back_end
# Counts, writes, says so, and lives until its input ends.
WRITER = """
import sys
from pathlib import Path
from gateway.lib.metrics import names
from gateway.lib.metrics.process_file import ProcessFile
names.CALLS.add("acme", "mcp", "success", amount=float(sys.argv[2]))
names.CALL_SECONDS.observe(0.003, "auth")
names.AUDIT_WAITING.set(7)
names.DEGRADED.set(1)
names.SCHEDULE_LAST_RUN.set(1000, "audit.seal_logs")
ProcessFile(Path(sys.argv[1]), sys.argv[3]).write()
print("written", flush=True)
sys.stdin.read()
"""


class Writer:
    def __init__(self, folder: Path, calls: int, role: str = "web") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(calls), role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "written\n"

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


@pytest.fixture(autouse=True)
def _own_figures() -> Iterator[None]:
    figures.reset_all()
    yield
    figures.reset_all()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "metrics"


def test_two_processes_are_one_answer_until_one_of_them_is_killed(folder: Path) -> None:
    first, second = Writer(folder, 3), Writer(folder, 4)
    try:
        text = scraped(folder)
        calls = {"vendor": "acme", "route": "mcp", "outcome": "success"}
        assert value_of(text, "gateway_calls_total", **calls) == 7
        assert value_of(text, "gateway_call_seconds_count", phase="auth") == 2
        assert value_of(text, "gateway_call_seconds_bucket", phase="auth", le="0.0025") == 0
        assert value_of(text, "gateway_call_seconds_bucket", phase="auth", le="0.005") == 2
        assert value_of(text, "gateway_audit_waiting") == 14
        assert value_of(text, "gateway_degraded") == 1
        assert value_of(text, "gateway_processes", role="web") == 2
        second.kill()
        text = scraped(folder)
        # Its gauges are gone at once. A counter never falls, and a last run stays one.
        assert value_of(text, "gateway_audit_waiting") == 7
        assert value_of(text, "gateway_processes", role="web") == 1
        assert value_of(text, "gateway_calls_total", **calls) == 7
        # The next process takes the free place and goes on from its counts: no file is left behind.
        third = Writer(folder, 1)
        assert value_of(scraped(folder), "gateway_calls_total", **calls) == 8
        assert value_of(scraped(folder), "gateway_call_seconds_count", phase="auth") == 3
        assert len(list(folder.glob("*.figures"))) == 2
        third.kill()
    finally:
        first.kill()
        second.kill()
    text = scraped(folder)
    assert value_of(text, "gateway_degraded") is None
    assert value_of(text, "gateway_schedule_last_run_timestamp_seconds", task="audit.seal_logs") == 1000


def test_a_start_removes_what_ended_processes_left(folder: Path) -> None:
    gone, living = Writer(folder, 3), Writer(folder, 4)
    try:
        gone.kill()
        remove_ended(folder)
        assert [(one.role, one.is_live) for one in read_all(folder)] == [("web", True)]
    finally:
        living.kill()


def test_a_forked_child_has_a_file_and_counts_of_its_own(folder: Path) -> None:
    file = ProcessFile(folder, "worker")
    names.CALLS.add("acme", "mcp", "success", amount=5)
    file.write()
    child = os.fork()
    if not child:
        names.CALLS.add("acme", "mcp", "success", amount=2)
        file.write()
        os._exit(0)
    os.waitpid(child, 0)
    counts = [one.snapshot.figures["gateway_calls_total"][0].value for one in read_all(folder)]
    assert sorted(counts) == [2, 5], "what the parent had counted is not counted twice"


def test_a_file_of_another_build_or_of_nonsense_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_file, "_build", lambda: "0.0.1 older")
    names.CALLS.add("acme", "mcp", "success")
    ProcessFile(folder, "web").write()
    assert read_all(folder) != []
    monkeypatch.undo()
    (folder / "web-9.figures").write_bytes(b"\xff\x00nonsense")
    assert read_all(folder) == []


def test_a_label_outside_its_closed_list_is_not_shown(folder: Path) -> None:
    names.CALLS.add("acme", "mcp", "success")
    names.CALLS.add("acme", "Initech Ltd", "success")
    names.CALL_SECONDS.observe(1, "alice@example.com")
    ProcessFile(folder, "web").write()
    text = scraped(folder)
    assert value_of(text, "gateway_calls_total", vendor="acme", route="mcp", outcome="success") == 1
    assert "Initech" not in text
    assert "alice" not in text


def test_names_are_those_of_the_contract(folder: Path) -> None:
    labels = {figure.name: figure.labels for figure in figures.all_figures()}
    assert all(name.startswith("gateway_") for name in labels)
    assert labels["gateway_calls_total"] == ("vendor", "route", "outcome")
    assert labels["gateway_call_seconds"] == ("phase",)
    assert labels["gateway_log_shipping_delivered_total"] == ("platform", "outcome")
    assert set(names.PLATFORMS) == set(PLATFORMS)
    build = [key for key in samples_of(scraped(folder)) if key[0] == "gateway_build_info"]
    assert [[label for label, _ in each[1]] for each in build] == [["commit", "version"]]

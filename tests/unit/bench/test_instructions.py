"""Instructions of a call: the counter's command, its sums, and calls that are answered whole."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from bench.instructions import Counted, Window, call, lines, main
from bench.processes import BenchFailed
from bench.targets import Target
from bench.variants import Variant


def test_a_variant_runs_under_the_counter() -> None:
    counted = Counted("new", code="/tmp/new", folder="/tmp/counts")
    assert counted.command(8123) == (
        *("valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet"),
        "--callgrind-out-file=/tmp/counts/new.out",
        *Variant("new").command(8123),
    )


@pytest.fixture
def control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for valgrind's program: a dump writes the file `sum`, and `says` is its output."""
    program = tmp_path / "callgrind_control"
    program.write_text(
        f'#!/bin/sh\ncat "{tmp_path}/says" 2>/dev/null\n'
        f'[ "$1" = --dump ] && cp "{tmp_path}/sum" "{tmp_path}/new.out.1"\nexit 0\n',
        encoding="utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_a_window_has_the_sum_of_its_dump(control: Path) -> None:
    (control / "sum").write_text("version: 1\nsummary: 7\nfn=a\n1 2\ntotals: 1234\n", encoding="utf-8")
    window = Window(Target("new", 1, 2, [], []), control)
    window.begin()
    assert window.end() == 1234
    assert not list(control.glob("new.out.*")), "the next dump is read alone"


def test_a_process_that_cannot_be_counted_is_a_failure(control: Path) -> None:
    (control / "says").write_text("Error: Callgrind task with PID/name '2' not detected.", encoding="utf-8")
    with pytest.raises(BenchFailed, match="not detected"):
        Window(Target("new", 1, 2, [], []), control)


@pytest.mark.parametrize("parts", [[b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", b"si", b"te-1"]])
def test_a_call_waits_for_its_whole_answer(parts: list[bytes]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(5)
        server = threading.Thread(target=lambda: [theirs.sendall(part) for part in parts])
        server.start()
        call(ours, b"POST / HTTP/1.1\r\n\r\n", b"site-1")
        server.join(5)


def test_another_answer_is_a_failure() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(5)
        theirs.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno")
        with pytest.raises(BenchFailed, match="A wrong answer"):
            call(ours, b"POST / HTTP/1.1\r\n\r\n", b"site-1")


def test_ratios_are_those_of_lower_quartiles() -> None:
    """A slice with work of the clock in it does not count."""
    first, second = lines({"base": [100.0, 90.0, 400.0, 110.0], "new": [105.0, 106.0, 99.0, 900.0]})
    assert first == "base                     100 instructions a call (x1.0000); smallest 90, median 105"
    assert second == "new                      105 instructions a call (x1.0500); smallest 99, median 106"


def test_a_machine_without_valgrind_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert main(["base"]) == 1
    assert "valgrind is missing" in capsys.readouterr().err

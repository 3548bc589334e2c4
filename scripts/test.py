"""The test suite: on SQLite and the in-process store, and on the real back ends that the environment names.

`python scripts/test.py [--browser] [PATH OR PYTEST OPTION ...]`. TEST_DATABASE_URL (PostgreSQL) and TEST_REDIS_URL name
servers that tests may write to. TEST_LONG=1 adds the long tests (tests/long_ones.py). With --browser only tests/browser
runs, in the system's Chromium; TEST_UNTIL is a Unix time after which no more of them begin.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
# The suite's own settings decide; a deployment's variables in this shell must not reach it.
SETTINGS = ("DATABASE_URL", "REDIS_URL", "GATEWAY_MODE", "GATEWAY_TEST_RUN", "GATEWAY_TEST_VAR", "BASE_URL", "VAR")
# Half of the time to collect the tests goes into compiling them: what it gives is kept for the next process.
SCRUBBED = (*SETTINGS, "PYTHONDONTWRITEBYTECODE")
# PostgreSQL, and deadlines that pass, leave a process waiting now and then. Each collects all tests, which takes 7 s.
WORKERS = str(min((os.cpu_count() or 1) + 1, 8))
BROWSERS = str(min(os.cpu_count() or 1, 4))  # each with a service of its own
# These start servers, and half of their time goes into waiting for them: they run beside the others, in a run of their
# own. Tests that share a server run in the process that has started it.
STARTING_SERVERS = ("e2e", "faults")
POLL_SECONDS = 0.2
# A plugin that takes a second to load in each process, and whose fixtures no test uses.
WITHOUT = ("-p", "no:schemathesis")
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ONCE_OR_EMBEDDED = "one_back_end or embedded"
NOT_ONCE = "not one_back_end"
NOT_LONG = "not long"
DEFAULT_PORTS = {"postgres": 5432, "postgresql": 5432, "redis": 6379, "rediss": 6379}


@dataclass(frozen=True, slots=True)
class BackEnds:
    """One set of back ends to run the suite on; `variables` select it, `marks` the tests (all of them when empty)."""

    title: str
    marks: str = ""
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Outcome:
    """The result of a pass over the suite."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    exit_code: int = 0

    def line(self) -> str:
        """`N passed, N failed` with what else there was."""
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped} in {self.seconds:.0f} s"


def back_ends(environ: dict[str, str]) -> list[BackEnds]:
    """Pure: the embedded back ends, and the real ones as far as they are named.

    Production's pair takes every test that a back end can change. The embedded pair then runs what does not depend on
    back ends, and what goes through code of its own (tests/embedded.py). Without production's whole pair it runs all.
    """
    embedded = "SQLite and the in-process store"
    database, redis = environ.get("TEST_DATABASE_URL", ""), environ.get("TEST_REDIS_URL", "")
    if not database and not redis:
        return [BackEnds(embedded)]
    names = f"{'PostgreSQL' if database else 'SQLite'} and {'Redis' if redis else 'the in-process store'}"
    variables = {"DATABASE_URL": database, "REDIS_URL": redis}
    chosen = {name: value for name, value in variables.items() if value}
    part = ONCE_OR_EMBEDDED if database and redis else ""
    return [BackEnds(embedded, marks=part), BackEnds(names, marks=NOT_ONCE, variables=chosen)]


def unreachable(address: str) -> str | None:
    """`host:port` of a server that does not accept connections, None for one that does."""
    parts = urlsplit(address)
    host, port = parts.hostname or "127.0.0.1", parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return f"{host}:{port}"
    return None


def fail(sentence: str) -> int:
    """Say what to do in one line."""
    print(sentence, file=sys.stderr)
    return 2


def environment_of_tests() -> dict[str, str]:
    """The environment of this process without SCRUBBED."""
    return {name: value for name, value in os.environ.items() if name not in SCRUBBED}


class Run:
    """One pytest process. With `quiet`, what it prints is kept for `relay`."""

    def __init__(self, arguments: list[str], variables: dict[str, str], *, quiet: bool = False) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gateway-test-report-")
        self._report = Path(self._folder.name) / "report.xml"
        self._output = (Path(self._folder.name) / "output").open("wb+") if quiet else None
        self._shown = 0
        self._started = time.monotonic()
        command = [sys.executable, "-m", "pytest", *WITHOUT, f"--junitxml={self._report}", *arguments]
        environment = environment_of_tests() | variables
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=self._output)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def relay(self) -> None:
        """Print the kept output that has not been printed yet."""
        if self._output is None:
            return
        text = os.pread(self._output.fileno(), os.fstat(self._output.fileno()).st_size, self._shown)
        self._shown += len(text)
        sys.stdout.buffer.write(text)
        sys.stdout.flush()

    def outcome(self) -> Outcome:
        """The counts, when the process has ended."""
        code = self._process.wait()
        found = read_report(self._report) if self._report.exists() else Outcome()
        found.seconds = time.monotonic() - self._started
        found.exit_code = code
        return found

    def close(self) -> None:
        """End the process, and remove what it left."""
        if self.is_running():
            self._process.terminate()
            self._process.wait()
        if self._output is not None:
            self._output.close()
        self._folder.cleanup()


def run_pytest(arguments: list[str], variables: dict[str, str]) -> Outcome:
    """One pytest process; its own closing line stays in the output."""
    with closing(Run(arguments, variables)) as run:
        return run.outcome()


def read_report(path: Path) -> Outcome:
    """The counts of a JUnit report."""
    suites = ElementTree.parse(path).getroot().iter("testsuite")  # noqa: S314 - our own file
    outcome = Outcome()
    for suite in suites:
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped = int(suite.get("skipped", 0))
        outcome.failed += failed
        outcome.skipped += skipped
        outcome.passed += int(suite.get("tests", 0)) - failed - skipped
    return outcome


def marks(wanted: str) -> list[str]:
    """The options that choose tests: those of `wanted`, and long ones where TEST_LONG asks for them."""
    parts = [f"({wanted})"] if wanted else []
    parts += [] if os.environ.get("TEST_LONG") == "1" else [NOT_LONG]
    return ["-m", " and ".join(parts)] if parts else []


def run_suite(back_end: BackEnds, extra: list[str], installation: Installation) -> Outcome:
    """The suite on one set of back ends. Tests that start servers wait for those of third parties and run beside it."""
    if extra:
        installation.wait()
        return run_pytest(extra, back_end.variables)
    starting = [f"tests/{name}" for name in STARTING_SERVERS]
    left_out = ["tests/browser", "tests/unit"] if back_end.marks == NOT_ONCE else ["tests/browser"]
    chosen = [*marks(back_end.marks), "-n", WORKERS]
    ignored = [f"--ignore={path}" for path in [*starting, *left_out]]
    started = time.monotonic()
    with ExitStack() as stack:
        runs = [stack.enter_context(closing(Run(["tests", *ignored, *chosen], back_end.variables)))]
        while len(runs) == 1 or any(run.is_running() for run in runs):
            if len(runs) == 1 and installation.is_done():
                beside = Run([*starting, *chosen, "--dist", "loadfile"], back_end.variables, quiet=True)
                runs.append(stack.enter_context(closing(beside)))
            elif not runs[0].is_running():
                runs[-1].relay()
            time.sleep(POLL_SECONDS)
        runs[-1].relay()
        outcome = together([run.outcome() for run in runs])
    outcome.seconds = time.monotonic() - started
    return outcome


def together(parts: list[Outcome]) -> Outcome:
    """The counts of runs beside each other, and the first exit code that is not 0."""
    return Outcome(
        passed=sum(part.passed for part in parts),
        failed=sum(part.failed for part in parts),
        skipped=sum(part.skipped for part in parts),
        exit_code=next((part.exit_code for part in parts if part.exit_code), 0),
    )


def find_chromium() -> str | None:
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def run_browser_tests(extra: list[str]) -> int:
    """The browser tests in a process of their own."""
    chromium = find_chromium()
    if chromium is None:
        return fail(
            "Chromium is needed. Install it (Debian, Ubuntu: apt-get install chromium) or name it: CHROMIUM=..."
        )
    # One test at a time for each worker: they differ in length more than ten times.
    workers = ["-n", BROWSERS, "--maxschedchunk", "1"]
    paths = [] if any((ROOT / each.partition("::")[0]).exists() for each in extra) else ["tests/browser"]
    outcome = run_pytest([*paths, *(extra or [*workers, *marks("")])], {"CHROMIUM": chromium})
    print(f"\nBrowser tests in {chromium}: {outcome.line()}")
    return outcome.exit_code


class InstallationError(Exception):
    """The third-party programs of the tests could not be installed."""


class Installation:
    """The third-party programs of the tests, installed while the tests that need none of them run."""

    def __init__(self) -> None:
        script = ROOT / "scripts" / "install_test_vendors.sh"
        self._process = subprocess.Popen(["sh", str(script)], cwd=ROOT)

    def is_done(self) -> bool:
        """Raises: InstallationError."""
        if self._process.poll() is None:
            return False
        self.wait()
        return True

    def wait(self) -> None:
        """Raises: InstallationError."""
        if self._process.wait() != 0:
            raise InstallationError

    def end(self) -> None:
        """Stop an installation that nothing waits for any more. The next run starts it over."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()


def compile_tests() -> None:
    """Let each test of a new clone be compiled once: workers would each do it, all at the same time."""
    if (ROOT / "tests" / "__pycache__").exists():
        return
    large = ["tests/api", "tests/unit"]
    parts = [["tests", *(f"--ignore={path}" for path in large)], *([path] for path in large)]
    # A module that does not import is reported by the run that follows.
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "pytest", *WITHOUT, "-q", "--collect-only", *part],
            cwd=ROOT,
            env=environment_of_tests(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for part in parts
    ]
    try:
        for process in running:
            process.wait()
    finally:
        for process in running:
            process.kill()  # those that an ended run leaves behind


def run_on(wanted: list[BackEnds], extra: list[str]) -> int:
    """The suite on each of `wanted`, and a line for each at the end."""
    installation = Installation()
    outcomes = []
    try:
        if not extra:
            compile_tests()
        for entry in wanted:
            print(f"\n=== {entry.title}", flush=True)
            outcomes.append(run_suite(entry, extra, installation))
    except InstallationError:
        return fail("The third-party programs of the tests could not be installed: see the lines above.")
    finally:
        installation.end()
    print("\nThe suite ran on:")
    for entry, outcome in zip(wanted, outcomes, strict=True):
        print(f"  {entry.title}: {outcome.line()}")
    print(f"\n{sum(one.passed for one in outcomes)} passed, {sum(one.failed for one in outcomes)} failed")
    return 1 if any(outcome.exit_code for outcome in outcomes) else 0


def main(arguments: list[str]) -> int:
    """Run, and say at the start and at the end which back ends it was."""
    if "--browser" in arguments:
        return run_browser_tests([argument for argument in arguments if argument != "--browser"])
    for name in ("TEST_DATABASE_URL", "TEST_REDIS_URL"):
        if os.environ.get(name) and (place := unreachable(os.environ[name])):
            return fail(f"{name}: nothing answers at {place}. Start the server, or unset {name} to leave it out.")
    wanted = back_ends(dict(os.environ))
    print(f"Back ends: {'; then '.join(entry.title for entry in wanted)}", flush=True)
    if len(wanted) == 1:
        print("(set TEST_DATABASE_URL and TEST_REDIS_URL to run on PostgreSQL and Redis too)", flush=True)
    return run_on(wanted, arguments)


if __name__ == "__main__":
    # An ended run takes the program it waits for with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)

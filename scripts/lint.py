"""Every check of `make lint`, as many at a time as there are cores. The exit code says whether all of them passed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("gateway", "audit", "orgs", "billing", "oauth_ext", "credentials", "proxy", "demo")
# bootstrap.py is written for interpreters that have no annotations.
UNTYPED_SCRIPTS = {"bootstrap.py"}
PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[a-z0-9,-]+\])?==[^\s;/@]+( ; [^/]+)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def lock_faults(name: str, text: str) -> list[str]:
    """Pure: the lines of a lock file that are neither a pinned version nor a hash, such as an index address."""
    return [
        f"{name}:{number}: neither a pinned version nor a hash: {line[:80]}"
        for number, line in enumerate(text.splitlines(), start=1)
        if not PIN.fullmatch(line) and not HASH.fullmatch(line)
    ]


# A check returns its exit code and what it has to say.
Check = Callable[[], tuple[int, str]]


def check_lock_files() -> tuple[int, str]:
    """No lock file names where packages come from, and every line pins or proves one."""
    files = sorted([*ROOT.glob("requirements*.lock"), *ROOT.glob("tests/*/*.lock")])
    faults = [fault for file in files for fault in lock_faults(file.name, file.read_text())]
    if not files:
        faults = ["There is no lock file."]
    return (1 if faults else 0), "".join(f"{fault}\n" for fault in faults)


class Programs:
    """The programs of the virtual environment that run now."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()

    def check(self, *command: str, settings: str = "tests.settings") -> Check:
        """A check that is a program."""
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": settings}

        def run() -> tuple[int, str]:
            process = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            self._running.add(process)
            output, _ = process.communicate()
            self._running.discard(process)
            return process.returncode, output

        return run

    def end(self) -> None:
        """End those that are left."""
        for process in list(self._running):
            process.terminate()


def checks(programs: Programs) -> dict[str, Check]:
    """Every check by its name, the longest first."""
    scripts = sorted(f"scripts/{file.name}" for file in ROOT.glob("scripts/*.py") if file.name not in UNTYPED_SCRIPTS)
    import_contracts = str(Path(sys.executable).with_name("lint-imports"))
    program = programs.check
    return {
        "types": program("-m", "mypy", *PACKAGES, *scripts),
        "import contracts": program(import_contracts),
        "migrations": program("manage.py", "makemigrations", "--check", "--dry-run"),
        "migrations of the provider's library": program(
            "manage.py", "makemigrations", "--check", "--dry-run", settings="tests.stripe_settings"
        ),
        "migrations beside the last release": program("scripts/lint_migrations.py"),
        "django check": program("manage.py", "check"),
        "messages of other languages": program("scripts/messages.py", "--check"),
        "templates": program("scripts/check_templates.py"),
        "ruff check": program("-m", "ruff", "check", "."),
        "ruff format": program("-m", "ruff", "format", "--check", "."),
        "lock files": check_lock_files,
    }


def main() -> int:
    """Run every check and say at the end which failed."""
    failed = []
    with in_parallel(Programs()) as results:
        for name, (code, output, seconds) in results:
            if code != 0:
                failed.append(name)
            said = "FAILED" if code else "ok"
            print(f"--- {name}\n{output}    {said} ({seconds:.1f} s)", flush=True)
    print(f"\nlint: {len(failed)} failed: {', '.join(failed)}" if failed else "\nlint: all checks passed")
    return 1 if failed else 0


@contextmanager
def in_parallel(programs: Programs) -> Iterator[Iterator[tuple[str, tuple[int, str, float]]]]:
    """Name and result (exit code, output, seconds) of each check, as they end; none runs after the block."""

    def timed(name: str, check: Check) -> tuple[str, tuple[int, str, float]]:
        started = time.monotonic()
        return name, (*check(), time.monotonic() - started)

    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        futures = [pool.submit(timed, name, check) for name, check in checks(programs).items()]
        yield (future.result() for future in as_completed(futures))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        programs.end()


if __name__ == "__main__":
    # An ended run takes its programs with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

"""Every check of `make lint`, one after the other; all of them run, and the exit code says whether all passed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
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


def check_lock_files() -> int:
    """No lock file names where packages come from, and every line pins or proves one."""
    files = sorted([*ROOT.glob("requirements*.lock"), *ROOT.glob("tests/*/*.lock")])
    faults = [fault for file in files for fault in lock_faults(file.name, file.read_text())]
    if not files:
        faults = ["There is no lock file."]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def program(*command: str, settings: str = "tests.settings") -> Callable[[], int]:
    """A check that is a program of the virtual environment."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": settings}
    return lambda: subprocess.run([sys.executable, *command], cwd=ROOT, env=environment).returncode


def checks() -> dict[str, Callable[[], int]]:
    """Every check by its name, the quick ones first."""
    scripts = sorted(f"scripts/{file.name}" for file in ROOT.glob("scripts/*.py") if file.name not in UNTYPED_SCRIPTS)
    import_contracts = str(Path(sys.executable).with_name("lint-imports"))
    return {
        "lock files": check_lock_files,
        "ruff check": program("-m", "ruff", "check", "."),
        "ruff format": program("-m", "ruff", "format", "--check", "."),
        "import contracts": program(import_contracts),
        "django check": program("manage.py", "check"),
        "migrations": program("manage.py", "makemigrations", "--check", "--dry-run"),
        "migrations of the provider's library": program(
            "manage.py", "makemigrations", "--check", "--dry-run", settings="tests.stripe_settings"
        ),
        "templates": program("scripts/check_templates.py"),
        "types": program("-m", "mypy", *PACKAGES, *scripts),
    }


def main() -> int:
    """Run every check and say at the end which failed."""
    failed = []
    for name, check in checks().items():
        started = time.monotonic()
        print(f"--- {name}", flush=True)
        if check() != 0:
            failed.append(name)
        print(f"    {'FAILED' if name in failed else 'ok'} ({time.monotonic() - started:.1f} s)", flush=True)
    print(f"\nlint: {len(failed)} failed: {', '.join(failed)}" if failed else "\nlint: all checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    # An ended run takes the program it waits for with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

"""Brings the virtual environment to the wanted lock file and becomes the wanted program inside it.

Started by scripts/bootstrap.py. Levels: `run` (the service and its demo) and `dev` (that, tests and lint).
Variables: VENV (.venv), PYTHON (the interpreter that a new environment is made with).
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

ROOT = Path(__file__).resolve().parent.parent
# Every lock is a superset of those before it: what `dev` installs is enough for `run`.
LOCKS = {"run": ROOT / "requirements-demo.lock", "dev": ROOT / "requirements-dev.lock"}
STAMP_NAME = ".installed.json"
UNFINISHED_NAME = ".installing.json"
LOCK_NAME = ".bootstrap.lock"
# pip compiles on one core; this takes all of them. Files that no interpreter of this version reads stay as they are.
COMPILE = """
import compileall, re, sys, sysconfig
compileall.compile_dir(sysconfig.get_path('purelib'), quiet=2, workers=0, rx=re.compile(sys.argv[1]))
"""
# Left as they are: what a start with the default settings never imports, a third of all. Python compiles it on use.
UNCOMPILED = {"run": "/(stripe|djstripe|pip)/", "dev": "/pip/"}
LOG_NAME = "install.log"


def fail(sentence: str) -> NoReturn:
    """Say what to do in one line and stop."""
    sys.stderr.write(sentence + "\n")
    raise SystemExit(2)


def shown(path: Path) -> str:
    """A path as a person would type it from the project's root."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def lock_sha256(level: str) -> str:
    """The fingerprint of a level's lock file."""
    return hashlib.sha256(LOCKS[level].read_bytes()).hexdigest()


def package_count(level: str) -> int:
    """How many packages a level's lock file pins."""
    return len(re.findall(r"^[A-Za-z0-9][^ ]*==", LOCKS[level].read_text(), re.MULTILINE))


def covered_levels(level: str) -> list[str]:
    """The level itself and those that its lock file includes."""
    names = list(LOCKS)
    return names[: names.index(level) + 1]


def venv_version(venv: Path) -> str | None:
    """The X.Y of the environment's own interpreter, or None when it is missing or broken."""
    program = "import sys; print('%d.%d' % sys.version_info[:2]) if sys.prefix != sys.base_prefix else sys.exit(1)"
    try:
        answer = subprocess.run([venv / "bin/python", "-I", "-c", program], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def is_satisfied(venv: Path, level: str) -> bool:
    """Whether the environment works and holds what the level's lock file names."""
    try:
        stamp = json.loads((venv / STAMP_NAME).read_text())
        installed = (stamp["python"], stamp["locks"].get(level))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return False
    version = venv_version(venv)
    return version is not None and installed == (version, lock_sha256(level)) and not is_other_python_wanted(version)


def is_other_python_wanted(version: str) -> bool:
    """Whether PYTHON names an interpreter of another X.Y than the environment's."""
    return bool(os.environ.get("PYTHON")) and version != "{}.{}".format(*sys.version_info[:2])


@contextlib.contextmanager
def only_one(venv: Path) -> Iterator[None]:
    """Hold the environment's lock file: two starts at once would install into the same folder."""
    with (venv / LOCK_NAME).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write(f"Another start is installing into {shown(venv)}; waiting for it...\n")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def prepare_folder(venv: Path) -> None:
    """Make the folder, or refuse one that holds anything but an environment: making one clears it."""
    try:
        venv.mkdir(parents=True, exist_ok=True)
        names = {entry.name for entry in venv.iterdir()}
    except OSError as error:
        fail(f"VENV={shown(venv)} cannot be used: {error.strerror}. Name another folder: make VENV=/path/to/folder run")
    if names and not names & {"pyvenv.cfg", LOCK_NAME}:
        fail(f"VENV={shown(venv)} holds other files. Name a new folder: make VENV=/path/to/folder run")


def clear(venv: Path) -> None:
    """Empty the folder except for the lock that is held."""
    for entry in venv.iterdir():
        if entry.name == LOCK_NAME:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def create(venv: Path) -> None:
    """Make the environment from nothing, with the interpreter below this one when this one is its own."""
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        fail(
            "Python {}.{}.{} has no venv module. Install it (Debian, Ubuntu: apt-get install python3-venv) "
            "or run: make PYTHON=/path/to/another/python3.11 run".format(*sys.version_info[:3])
        )
    interpreter = getattr(sys, "_base_executable", None) or sys.executable
    sys.stderr.write(f"Making a virtual environment in {shown(venv)} with Python {sys.version.split()[0]}...\n")
    clear(venv)
    run_logged([interpreter, "-m", "venv", str(venv)], venv, "Could not make the virtual environment")


def usable_version(venv: Path) -> str | None:
    """The X.Y of an environment that can be installed into; None when it has to be made (again)."""
    version = venv_version(venv)
    # pip killed half way may have left packages that look complete.
    if version is None or is_other_python_wanted(version) or (venv / UNFINISHED_NAME).exists():
        return None
    pip = subprocess.run([venv / "bin/python", "-I", "-m", "pip", "--version"], capture_output=True)
    return version if pip.returncode == 0 else None


def install(venv: Path, level: str) -> None:
    """Install exactly what the lock file names; the stamp is written last, so an interrupted start does it again."""
    is_first = not (venv / STAMP_NAME).exists()
    if usable_version(venv) is None:
        create(venv)
        is_first = True
    when = "first start only" if is_first else f"{LOCKS[level].name} is new"
    sys.stderr.write(f"Installing {package_count(level)} packages ({when})...\n")
    with stamp_set_aside(venv) as unfinished:
        python = str(venv / "bin/python")
        # The lock file names every package with its dependencies, so pip has nothing to resolve.
        command = [python, "-m", "pip", "install", "--require-hashes", "--no-deps", "-r", str(LOCKS[level])]
        options = ["--no-compile", "--no-input", "--progress-bar", "off"]
        run_logged([*command, *options], venv, "Could not install the locked packages")
        run_logged([python, "-c", COMPILE, UNCOMPILED[level]], venv, "Could not compile the packages")
        stamp = {"python": venv_version(venv), "locks": {name: lock_sha256(name) for name in covered_levels(level)}}
        unfinished.write_text(json.dumps(stamp, indent=1))


@contextlib.contextmanager
def stamp_set_aside(venv: Path) -> Iterator[Path]:
    """The stamp is away under another name while pip works, and back afterwards: new on success, old when pip undid.

    A start that is killed leaves the other name behind, which tells the next one to make the environment again.
    """
    stamp, unfinished = venv / STAMP_NAME, venv / UNFINISHED_NAME
    if stamp.exists():
        stamp.replace(unfinished)
    else:
        unfinished.write_text("{}")
    try:
        yield unfinished
    except SystemExit:
        unfinished.replace(stamp)
        raise
    unfinished.replace(stamp)


def run_logged(command: list[str], venv: Path, complaint: str) -> None:
    """Run a command into the install log, or stop with its error in one line and the log's path."""
    log_path = venv / LOG_NAME
    # A user-wide pip setting of `user = true` would make every install into an environment fail.
    environment = {**os.environ, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    with log_path.open("a+") as log:
        start = log.tell()
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as process:
            try:
                copy_output(process.stdout, log)
            except KeyboardInterrupt:
                process.terminate()
                raise
        if process.returncode != 0:
            log.seek(start)
            fail(f"{complaint}: {last_error(log.read())} (all of it: {shown(log_path)})")


def copy_output(output: IO[str] | None, log: IO[str]) -> None:
    """Copy a command's output to the log; on a terminal, count the packages as they come."""
    count = 0
    for line in output or ():
        log.write(line)
        if line.startswith("Collecting ") and sys.stderr.isatty():
            count += 1
            sys.stderr.write(f"\r  {count} ")
    if count:
        sys.stderr.write("\r\033[K")


def last_error(output: str) -> str:
    """The most telling line of a failed command."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error", "fatal"))]
    return (errors or lines or ["it said nothing"])[-1]


def main(arguments: list[str]) -> NoReturn:
    """Become the wanted program inside an environment that satisfies the wanted level."""
    level, *command = arguments
    venv = ROOT / (os.environ.get("VENV") or ".venv")
    if not is_satisfied(venv, level):
        prepare_folder(venv)
        with only_one(venv):
            if not is_satisfied(venv, level):
                install(venv, level)
    python = str(venv / "bin/python")
    # The process id stays the one that was started, so signals reach the service itself.
    os.execv(python, [python, *command])  # noqa: S606


if __name__ == "__main__":
    # A stopped start must not leave pip running behind it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped.\n")
        sys.exit(130)

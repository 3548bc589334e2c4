"""Finds a Python that is new enough and hands over to scripts/environment.py with it.

This one file parses on Python 2.7 and on every Python 3, so that an old interpreter gets a sentence, not a traceback.
Usage: python scripts/bootstrap.py LEVEL (-m MODULE | SCRIPT) [ARGUMENT ...]
"""

# Newer spellings would be syntax errors on the interpreters that this file exists to greet.
# ruff: noqa: UP010, UP031, RUF005
from __future__ import print_function

import os
import subprocess
import sys

OLDEST = (3, 11)
PROBE = (
    "import sys\n"
    "try:\n"
    "    import ensurepip, venv\n"
    "    made = 'venv'\n"
    "except ImportError:\n"
    "    made = 'bare'\n"
    "print('%d.%d.%d %s' % (sys.version_info[:3] + (made,)))\n"
)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def fail(sentence):
    """Say what to do in one line and stop."""
    sys.stderr.write(sentence + "\n")
    sys.exit(2)


def probe(program):
    """The (version, has_venv) of a program, or None when it does not start or is no Python."""
    try:
        process = subprocess.Popen([program, "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        answer = process.communicate()[0].decode("ascii", "replace").split()
    except OSError:
        return None
    # A version manager's shim exists but answers with an error when that version is not installed.
    if process.returncode != 0 or len(answer) != 2:
        return None
    return tuple(int(part) for part in answer[0].split(".")), answer[1] == "venv"


def candidates(wanted, venv_python):
    """The programs to ask, best first: the one that was named, or else what machines commonly have."""
    if wanted:
        return [wanted]
    names = ["python3", "python3.11", "python3.12", "python3.13", "python3.14", "python"]
    return ([venv_python] if os.path.exists(venv_python) else []) + [sys.executable] + names


def choose(programs, venv_python):
    """The first program that is new enough and can make a virtual environment, as (program, None).

    When there is none: (None, the one line that says what to do).
    """
    too_old = None
    without_venv = None
    for program in programs:
        found = probe(program) if program else None
        if found is None:
            continue
        version, has_venv = found
        if version[:2] < OLDEST:
            too_old = too_old or version
        elif has_venv or program == venv_python:
            return program, None
        else:
            without_venv = without_venv or version
    if without_venv:
        return None, (
            "Python %d.%d.%d has no venv module. Install it (Debian, Ubuntu: apt-get install python3-venv) "
            "or run: make PYTHON=/path/to/another/python3.11 run" % without_venv
        )
    if too_old:
        what = "this is %d.%d.%d" % too_old
    else:
        what = "none was found" if len(programs) > 1 else "%s does not start" % programs[0]
    return None, (
        "Python %d.%d or newer is needed; %s. Install it or run: make PYTHON=/path/to/python3.11 run"
        % (OLDEST + (what,))
    )


def main(arguments):
    """Replace this process by scripts/environment.py under the chosen Python."""
    os.chdir(ROOT)
    venv_python = os.path.join(ROOT, os.environ.get("VENV") or ".venv", "bin", "python")
    programs = candidates(os.environ.get("PYTHON", ""), venv_python)
    program, complaint = choose(programs, venv_python)
    if complaint:
        fail(complaint)
    # Nothing of a shell is wanted here: the process id stays the one that was started, so signals reach the service.
    os.execvp(program, [program, os.path.join(ROOT, "scripts", "environment.py")] + arguments)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])

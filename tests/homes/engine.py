"""podman and podman-compose, driven by the words of the document: `docker` in them is a program that calls these."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

COMMAND_S = 420
WAITING = Path(__file__).with_name("waiting_podman.py")
_DOCKER = """#!/bin/sh
# `docker` in the words of docs/install.md.
set -eu
case "${1:-}" in
build) shift; exec podman build --format docker %(build)s "$@" ;;
compose)
    shift
    for word in "$@"; do
        # Nobody sits at a terminal here.
        if [ "$word" = exec ] || [ "$word" = run ]; then
            before=; while [ "$1" != "$word" ]; do before="$before $1"; shift; done
            shift
            exec %(compose)s $before "$word" -T "$@"
        fi
    done
    exec %(compose)s "$@" ;;
*) exec podman "$@" ;;
esac
"""


def say(text: str) -> None:
    sys.stdout.write(f"{text.rstrip()}\n")
    sys.stdout.flush()


class CommandFailed(AssertionError):
    """The message has the command and what it said."""


def compose_program() -> Path | None:
    """podman-compose of the environment that runs this, or of the system."""
    beside = Path(sys.executable).with_name("podman-compose")
    found = shutil.which("podman-compose")
    return beside if beside.exists() else Path(found) if found else None


def why_not() -> str:
    """The reason why nothing can run here; empty where it can."""
    missing = [name for name in ("podman", "node", "npm", "curl", "git") if shutil.which(name) is None]
    if compose_program() is None:
        missing.append("podman-compose")
    if not Path(sys.executable).with_name("caddy").exists() and not os.environ.get("HOMES_CADDY_IMAGE"):
        missing.append("caddy")
    if missing:
        return f"not installed: {', '.join(missing)}"
    return "" if os.geteuid() == 0 else "containers need networks of their own here, and so root"


@dataclass(frozen=True)
class Things:
    """The things that an engine keeps, by kind. Those of a deployment must be gone after it."""

    containers: frozenset[str]
    networks: frozenset[str]
    volumes: frozenset[str]
    pods: frozenset[str]

    def __sub__(self, others: Things) -> list[str]:
        return sorted(
            f"{kind} {name}"
            for kind in ("containers", "networks", "volumes", "pods")
            for name in getattr(self, kind) - getattr(others, kind)
        )


@dataclass
class Engine:
    """Runs commands in `folder`, which holds the program called docker."""

    folder: Path
    build_options: list[str]
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        programs = self.folder / "programs"
        programs.mkdir(parents=True, exist_ok=True)
        docker = programs / "docker"
        docker.write_text(_DOCKER % {"build": shlex.join(self.build_options), "compose": compose_program()})
        docker.chmod(0o755)
        podman = programs / "podman"
        podman.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {WAITING} {shutil.which("podman")} "$@"\n')
        podman.chmod(0o755)
        self.environment["PATH"] = f"{programs}:{os.environ['PATH']}"

    def shell(self, text: str, folder: Path, more: Mapping[str, str] | None = None) -> str:
        """The output of a shell that ends at the first fault. Raises: CommandFailed."""
        return self.run("bash", "-euo", "pipefail", "-c", text, folder=folder, more=more)

    def run(self, *command: str, folder: Path | None = None, more: Mapping[str, str] | None = None) -> str:
        """The output of a program. Raises: CommandFailed."""
        started = subprocess.Popen(
            command,
            cwd=folder or self.folder,
            env={**os.environ, **self.environment, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            said, faults = started.communicate(timeout=COMMAND_S)
            ended = f"exit code {started.returncode}"
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            said, faults = started.communicate()
            ended = f"no end in {COMMAND_S} s"
        if started.returncode != 0:
            raise CommandFailed(f"{ended}: {shlex.join(command)}\n{said[-4000:]}\n{faults[-8000:]}")
        return said

    def things(self) -> Things:
        def names(*command: str) -> frozenset[str]:
            return frozenset(self.run("podman", *command).split())

        return Things(
            containers=names("ps", "--all", "--format", "{{.Names}}"),
            networks=names("network", "ls", "--format", "{{.Name}}"),
            volumes=names("volume", "ls", "--format", "{{.Name}}"),
            pods=names("pod", "ls", "--format", "{{.Name}}"),
        )

    def ailing(self, project: str) -> list[str]:
        """Containers of the project that have been started again, or that fail their health check, in words."""
        label = f"label=com.docker.compose.project={project}"
        found = []
        for name in self.run("podman", "ps", "--filter", label, "--format", "{{.Names}}").split():
            restarts = self.run("podman", "inspect", "--format", "{{.RestartCount}}", name).strip()
            checked = self.run("bash", "-c", f"podman healthcheck run {name} 2>&1 || echo fails")
            is_checked = "has no defined healthcheck" not in checked
            if restarts != "0" or (is_checked and "fails" in checked):
                found.append(f"{name}: started again {restarts} times; {checked.strip()}")
        return found

"""`web | worker | beat | manage | health`: what a container does. Nothing is supervised there: the engine does that."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from gateway.supervisor.options import Options, StartRefused, read_options
from gateway.supervisor.readiness import answers_ok
from gateway.supervisor.services import web_command

# What it remembers is only when each entry ran last; a new container may start from nothing.
BEAT_SCHEDULE = "/tmp/beat-schedule"  # noqa: S108
ROLES = ("web", "worker", "beat", "manage", "health")


def container_options(environ: Mapping[str, str]) -> Options:
    """Pure: the options of a container, which listens on every address of its own network."""
    host = environ.get("HOST") or "0.0.0.0"  # noqa: S104 - what is published is the engine's choice
    return read_options({**environ, "HOST": host, "DEMO": "0"}, Path("/"))


def role_command(role: str, arguments: list[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Pure: the program that a role becomes.

    Raises: StartRefused for an unknown role or a wrong variable.
    """
    celery = (sys.executable, "-m", "celery", "--app", "gateway.celery")
    log = ("--loglevel", "INFO")
    if role == "web":
        return (*web_command(container_options(environ)), *arguments)
    if role == "worker":
        return (*celery, "worker", *log, "--concurrency", environ.get("WORKER_PROCESSES") or "2", *arguments)
    if role == "beat":
        return (*celery, "beat", *log, "--schedule", BEAT_SCHEDULE, "--pidfile=", *arguments)
    if role == "manage":
        return (sys.executable, "manage.py", *arguments)
    raise StartRefused(f"{role} is none of {', '.join(ROLES)}.")


def is_alive(environ: Mapping[str, str]) -> bool:
    """Whether the web server in this container answers."""
    options = container_options(environ)
    host = urlsplit(options.base_url).netloc
    return answers_ok(f"http://{options.connect_host}:{options.port}/health", host_header=host)


def main() -> int:
    """Become the role's program, under the same process id, so that the engine's signals reach it."""
    role, *arguments = sys.argv[1:] or ["web"]
    try:
        if role == "health":
            return 0 if is_alive(os.environ) else 1
        command = role_command(role, arguments, os.environ)
    except StartRefused as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 2
    return os.execv(command[0], command)  # noqa: S606 - commands are written here and in services.py


if __name__ == "__main__":
    sys.exit(main())

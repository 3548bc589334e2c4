"""`web | worker | shipping | beat | metrics | manage | health [worker | shipping]`: the container's entry point.

The container engine supervises it.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from gateway.supervisor.options import Options, StartRefused, read_options
from gateway.supervisor.readiness import answers_ok
from gateway.supervisor.services import metrics_command, shipping_command, web_command

# It holds only each entry's last run, so a new container may start without it.
BEAT_SCHEDULE = "/tmp/beat-schedule"  # noqa: S108
ROLES = ("web", "worker", "shipping", "beat", "metrics", "manage", "health")
# Variables read here, before the settings. NAME_FILE works for them as for settings.
VARIABLES = ("BASE_URL", "HOST", "PORT", "REDIS_URL", "SHIPPING_CONCURRENCY", "WEB_PROCESSES", "WORKER_PROCESSES")
# Seconds that the worker has to answer the health check.
PING_S = 5


def with_files(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment, with VARIABLES that are unset read from NAME_FILE. Raises: StartRefused naming the variable."""
    found = dict(environ)
    for name in VARIABLES:
        path = environ.get(f"{name}_FILE")
        if path and not environ.get(name):
            try:
                found[name] = Path(path).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as fault:
                raise StartRefused(f"{name}_FILE names a file that cannot be read: {fault}.") from fault
    return found


def container_options(environ: Mapping[str, str]) -> Options:
    """Pure: options of a container, which listens on all interfaces."""
    host = environ.get("HOST") or "0.0.0.0"  # noqa: S104 - what is published is the engine's choice
    return read_options({**environ, "HOST": host, "DEMO": "0"}, Path("/"))


def role_command(role: str, arguments: list[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Pure: the command line of a role. Raises: StartRefused for an unknown role or a wrong variable."""
    if role in {"web", "worker", "shipping"} and environ.get("GATEWAY_ROLE") == "helper":
        raise StartRefused(f"{role} needs its keys: GATEWAY_ROLE=helper is for beat, migrations and load_vendors.")
    celery = (sys.executable, "-m", "celery", "--app", "gateway.celery")
    log = ("--loglevel", "INFO")
    if role == "web":
        return (*web_command(container_options(environ)), *arguments)
    if role == "worker":
        return (*celery, "worker", *log, "--concurrency", environ.get("WORKER_PROCESSES") or "2", *arguments)
    if role == "shipping":
        return (*shipping_command(environ), *arguments)
    if role == "beat":
        return (*celery, "beat", *log, "--schedule", BEAT_SCHEDULE, "--pidfile=", *arguments)
    if role == "metrics":
        return (*metrics_command(), *arguments)
    if role == "manage":
        return (sys.executable, "manage.py", *arguments)
    raise StartRefused(f"{role} is none of {', '.join(ROLES)}.")


def ping_command(role: str, host: str) -> tuple[str, ...]:
    """Pure: the command that pings this container's worker, or its worker of log shipping."""
    name = "celery" if role == "worker" else role
    celery = (sys.executable, "-m", "celery", "--app", "gateway.celery", "inspect", "ping")
    # Without the destination any worker of the deployment would answer.
    return (*celery, "--destination", f"{name}@{host}", "--timeout", str(PING_S))


def is_alive(environ: Mapping[str, str]) -> bool:
    """Whether this container's web server answers /health."""
    options = container_options(environ)
    host = urlsplit(options.base_url).netloc
    return answers_ok(f"http://{options.connect_host}:{options.port}/health", host_header=host)


def main() -> int:
    """Replace this process with the role's program, which so receives the engine's signals."""
    role, *arguments = sys.argv[1:] or ["web"]
    try:
        environ = with_files(os.environ)
        worker = arguments[0] if arguments in (["worker"], ["shipping"]) else ""
        if role == "health" and not worker:
            return 0 if is_alive(environ) else 1
        is_ping = role == "health"
        command = ping_command(worker, socket.gethostname()) if is_ping else role_command(role, arguments, environ)
    except StartRefused as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 2
    return os.execv(command[0], command)  # noqa: S606 - commands are written here and in services.py


if __name__ == "__main__":
    sys.exit(main())

"""Pure: the programs of a run in start order."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from gateway.lib.queues import SHIPPING_QUEUE, SHIPPING_THREADS
from gateway.supervisor.child_environment import (
    DEMO_CLIENT_ID,
    demo_environment,
    provider_environment,
    service_environment,
    worker_environment,
)
from gateway.supervisor.options import Options, bracketed, is_given
from gateway.supervisor.processes import Service

# Seconds after the calls of a web process have ended: sessions with vendors are closed.
CLOSING_S = 8
WORKER_STOP_S = 2
# Proxies keep idle connections for 60 to 75 s and must close first: a request on a connection that the server has just
# closed is a 502. CONNECTIONS_PER_PROCESS bounds the number of open connections.
KEEP_ALIVE_S = 80
# uvicorn's flags besides application, host, port and number of processes.
SERVER_FLAGS = (
    *("--loop", "uvloop", "--http", "gateway.http_protocol:BoundedHttpProtocol"),
    *("--ws", "none", "--lifespan", "on"),
    *("--no-access-log", "--no-proxy-headers", "--no-server-header"),
    *("--timeout-keep-alive", str(KEEP_ALIVE_S)),
)


def demo_services(options: Options, environ: Mapping[str, str], client_secret: str) -> list[Service]:
    """The demo vendor server and the demo identity provider, as far as this run uses them."""
    services = []
    remote = () if options.is_loopback else ("--allow-remote",)
    if options.demo:
        command = _module("demo.vendor_server", "--host", options.host, "--port", str(options.vendor_port))
        services.append(
            Service(
                name="vendor",
                command=(*command, "--data", str(options.var / "demo-vendor"), *remote),
                environment=demo_environment(environ),
                stop_timeout_s=5,
                may_restart=True,
                ready_url=f"{options.vendor_url}/healthz",
            )
        )
    if options.runs_demo_provider:
        command = _module("demo.identity_provider", "--host", options.host, "--port", str(options.idp_port))
        identity = ("--issuer", options.idp_url, "--keys", str(options.var / "demo-identity"))
        client = ("--client-id", environ.get("OIDC_RP_CLIENT_ID") or DEMO_CLIENT_ID)
        services.append(
            Service(
                name="identity",
                command=(*command, *identity, *client, "--redirect-origin", options.base_url, *remote),
                environment=provider_environment(environ, client_secret),
                stop_timeout_s=5,
                may_restart=True,
                ready_url=f"http://{bracketed(options.connect_host)}:{options.idp_port}/healthz",
            )
        )
    return services


def preparation_service(
    options: Options, environ: Mapping[str, str], secrets: Mapping[str, str], *, catalogs: list[Path], seed_file: Path
) -> Service:
    arguments = [part for file in catalogs for part in ("--catalog", str(file))]
    if options.demo:
        arguments += ["--seed-file", str(seed_file)]
    return Service(
        # Runs to its end before the service starts.
        name="preparation",
        command=_module("gateway.supervisor.preparation", *arguments),
        environment=service_environment(options, environ, secrets),
        stop_timeout_s=10,
        may_restart=False,
    )


def gateway_services(options: Options, environ: Mapping[str, str], secrets: Mapping[str, str]) -> list[Service]:
    environment = service_environment(options, environ, secrets)
    ready_file = options.var / "worker.ready"
    web = Service(
        name="web",
        command=web_command(options),
        environment=environment,
        stop_timeout_s=options.stop_s + CLOSING_S,
        may_restart=False,
        ready_url=f"http://{bracketed(options.connect_host)}:{options.port}/ready",
        ready_host=urlsplit(options.base_url).netloc,
    )
    worker = Service(
        name="worker",
        command=worker_command(options.var),
        environment=worker_environment(environment, ready_file),
        # Celery's graceful stop takes seconds and gains nothing: every task starts again from the database.
        stop_timeout_s=WORKER_STOP_S,
        may_restart=True,
        ready_file=ready_file,
    )
    shipping = Service(
        name="shipping",
        command=shipping_command(environ),
        environment=environment,
        stop_timeout_s=WORKER_STOP_S,
        may_restart=True,
    )
    return [*_metrics_services(environ, environment), web, worker, shipping]


def _metrics_services(environ: Mapping[str, str], environment: Mapping[str, str]) -> list[Service]:
    """The program that answers Prometheus, before the processes whose figures it finds."""
    if not is_given(environ, "METRICS_ADDRESS"):
        return []
    command = metrics_command()
    return [Service(name="metrics", command=command, environment=dict(environment), stop_timeout_s=5, may_restart=True)]


def metrics_command() -> tuple[str, ...]:
    return _module("gateway.metrics_server")


def web_command(options: Options) -> tuple[str, ...]:
    """The uvicorn command line."""
    # Without Redis, counters and MCP sessions live in the process, so only one is started.
    processes = options.web_processes if options.has_redis else 1
    return (
        *_module("gateway.web_processes" if processes > 1 else "uvicorn", "gateway.asgi:application"),
        *("--host", options.host, "--port", str(options.port)),
        # No proxy headers: the service itself decides which X-Forwarded-For counts.
        *SERVER_FLAGS,
        *(("--workers", str(processes)) if processes > 1 else ()),
    )


def worker_command(folder: Path) -> tuple[str, ...]:
    """The worker with the scheduler embedded, which suffices on one host."""
    return (
        *_module("celery", "--app", "gateway.celery", "worker", "--beat", "--schedule", str(folder / "beat-schedule")),
        *("--include", "gateway.supervisor.worker_ready", "--concurrency", "2", "--loglevel", "INFO"),
        *("--without-gossip", "--without-mingle"),
    )


def shipping_command(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The worker of log shipping. Its threads wait for other people's servers most of the time."""
    return (
        *_module("celery", "--app", "gateway.celery", "worker", "--queues", SHIPPING_QUEUE, "--pool", "threads"),
        *("--concurrency", environ.get("SHIPPING_CONCURRENCY") or SHIPPING_THREADS),
        *("--hostname", "shipping@%h", "--loglevel", "INFO", "--without-gossip", "--without-mingle"),
        # A message that waits in the worker is lost to the others, and unacknowledged when the broker is lost.
        *("--prefetch-multiplier", "1"),
    )


def _module(name: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", name, *arguments)

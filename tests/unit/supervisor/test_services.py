"""The programs of a run and their commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.supervisor.options import read_options
from gateway.supervisor.services import demo_services, gateway_services, preparation_service, web_command


def names_of(environ: dict[str, str]) -> list[str]:
    options = read_options(environ, Path("/project"))
    services = [*demo_services(options, environ, "secret"), *gateway_services(options, environ, {})]
    return [service.name for service in services]


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({}, ["vendor", "identity", "web", "worker", "shipping"]),
        ({"DEMO": "0"}, ["web", "worker", "shipping"]),
        # Before the processes whose figures it finds.
        ({"DEMO": "0", "METRICS_ADDRESS": "127.0.0.1:9464"}, ["metrics", "web", "worker", "shipping"]),
        ({"OIDC_OP_DISCOVERY_URL": "https://id.example.com/x"}, ["vendor", "web", "worker", "shipping"]),
    ],
)
def test_what_runs(environ: dict[str, str], names: list[str]) -> None:
    assert names_of(environ) == names


@pytest.mark.parametrize(
    ("environ", "workers"),
    [
        ({}, None),
        ({"WEB_PROCESSES": "3"}, None),
        ({"REDIS_URL": "redis://h/1"}, None),
        ({"WEB_PROCESSES": "3", "REDIS_URL": "redis://h/1"}, "3"),
    ],
)
def test_more_web_processes_only_with_redis(environ: dict[str, str], workers: str | None) -> None:
    command = web_command(read_options(environ, Path("/project")))
    assert (command[command.index("--workers") + 1] if "--workers" in command else None) == workers


def test_the_web_server_does_not_believe_forwarded_addresses() -> None:
    assert "--no-proxy-headers" in web_command(read_options({}, Path("/project")))


@pytest.mark.parametrize(("host", "is_remote"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_demo_servers_open_up_only_when_host_says_so(host: str, is_remote: bool) -> None:
    environ = {"HOST": host}
    services = demo_services(read_options(environ, Path("/project")), environ, "secret")
    assert [("--allow-remote" in service.command) for service in services] == [is_remote, is_remote]


def test_no_secret_is_on_a_command_line_or_in_a_repr() -> None:
    environ: dict[str, str] = {}
    options = read_options(environ, Path("/project"))
    secrets = {"SECRET_KEY": "hunter2-key", "CREDENTIAL_KEYS": "hunter2-cred", "OIDC_RP_CLIENT_SECRET": "hunter2-oidc"}
    seed = Path("/project/seed.json")
    services = [
        *demo_services(options, environ, "hunter2-oidc"),
        preparation_service(options, environ, secrets, catalogs=[], seed_file=seed),
        *gateway_services(options, environ, secrets),
    ]
    assert "hunter2" not in repr(services)
    assert not any("hunter2" in part for service in services for part in service.command)


def test_the_preparation_loads_catalogs_in_order_and_seeds_only_the_demo() -> None:
    files = [Path("/a.toml"), Path("/b.toml")]
    for environ, seeds in (({}, True), ({"DEMO": "0"}, False)):
        options = read_options(environ, Path("/project"))
        service = preparation_service(options, environ, {}, catalogs=files, seed_file=Path("/project/seed.json"))
        given = [part for part in service.command if part.endswith(".toml")]
        assert given == ["/a.toml", "/b.toml"]
        assert ("--seed-file" in service.command) is seeds


def test_the_proxy_closes_idle_connections_first() -> None:
    flags = web_command(read_options({}, Path("/")))
    assert int(flags[flags.index("--timeout-keep-alive") + 1]) > 75

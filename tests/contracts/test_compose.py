"""compose.yaml: what every container is held to, and who gets which secret."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.settings import stopping
from gateway.supervisor.services import CLOSING_S
from tests.factories.compose_files import services_of

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "compose.yaml").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
HELPERS = {"migrate", "catalog", "beat", "metrics"}
# The figures of the host's processes, which hold no secret, and nothing else of the service's data.
VOLUMES = {"metrics": ["metrics:/data/metrics"]}
STORES = {"postgres", "redis"}
# Of these a file may stand in: what asks for the variable itself ends the start before the file is read.
MAY_BE_FILES = ("SECRET_KEY", "CREDENTIAL_KEYS", "BASE_URL", "OIDC_OP_DISCOVERY_URL", "OIDC_RP_CLIENT_ID")


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_has_its_bounds(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["pids_limit"]
    assert service["mem_limit"]
    assert service["logging"]["options"]["max-size"]
    assert any(mount.startswith("/tmp") for mount in service["tmpfs"])


def test_only_postgresql_and_the_tls_proxy_add_capabilities() -> None:
    assert {name for name, service in SERVICES.items() if "cap_add" in service} == {"postgres", "caddy"}
    assert SERVICES["caddy"]["cap_add"] == ["NET_BIND_SERVICE"]


def test_tls_is_chosen_and_gets_no_secret() -> None:
    caddy = SERVICES["caddy"]
    assert caddy["profiles"] == ["tls"]
    assert set(caddy["environment"]) == {"BASE_URL"}


def test_web_trusts_caddy_and_this_host_and_nothing_else_of_the_network() -> None:
    (network,) = yaml.safe_load(TEXT)["networks"]["default"]["ipam"]["config"]
    caddy = SERVICES["caddy"]["networks"]["default"]["ipv4_address"]
    given = SERVICES["web"]["environment"]["TRUSTED_PROXIES"]
    assert given == f"${{TRUSTED_PROXIES:-{network['gateway']},{caddy}}}"
    assert {name for name, service in SERVICES.items() if "networks" in service} == {"caddy"}


def test_no_container_is_given_the_address_of_a_proxy() -> None:
    """The engine gives addresses of ip_range. Proxies have theirs outside it, and each another."""
    (network,) = yaml.safe_load(TEXT)["networks"]["default"]["ipam"]["config"]
    subnet, given = (ipaddress.ip_network(_default(network[name])) for name in ("subnet", "ip_range"))
    many = services_of(ROOT / "compose.many.yaml")
    own = [SERVICES["caddy"]["networks"], many["proxy"]["networks"]]
    proxies = [ipaddress.ip_address(_default(each["default"]["ipv4_address"])) for each in own]
    assert given.subnet_of(subnet)  # type: ignore[arg-type]
    assert len({ipaddress.ip_address(_default(network["gateway"])), *proxies}) == 3
    assert all(address in subnet and address not in given for address in proxies)
    trusted = many["web"]["environment"]["TRUSTED_PROXIES"].removeprefix("${TRUSTED_PROXIES:+${TRUSTED_PROXIES},}")
    assert {ipaddress.ip_address(_default(each)) for each in trusted.split(",")} == {
        ipaddress.ip_address(_default(network["gateway"])),
        *proxies,
    }


def _default(text: str) -> str:
    """With the default of the variable in place of it."""
    return re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", text)


def test_web_is_checked_as_the_image_says() -> None:
    """An image in OCI's own format has no check, and Caddy waits for it."""
    [said] = re.findall(r"^HEALTHCHECK (.*) \\\n    CMD (.*)$", (ROOT / "Dockerfile").read_text(), flags=re.M)
    check = SERVICES["web"]["healthcheck"]
    options = dict(re.findall(r"--([a-z-]+)=(\S+)", said[0]))
    assert {name.replace("-", "_"): value for name, value in options.items()} == {
        name: str(value) for name, value in check.items() if name != "test"
    }
    assert check["test"] == ["CMD", *yaml.safe_load(said[1])]


def test_helpers_get_no_secret_but_the_stores() -> None:
    assert {name for name, service in SERVICES.items() if "env_file" in service} == {"web", "worker", "shipping"}
    for name in HELPERS:
        given = SERVICES[name]["environment"]
        assert given["GATEWAY_ROLE"] == "helper"
        private = {variable for variable in given if re.search("SECRET|KEY|TOKEN|OIDC|STRIPE", variable)}
        assert private == ({"OIDC_OP_DISCOVERY_URL"} if name == "metrics" else set()), "an address is no secret"
        assert SERVICES[name].get("volumes") == VOLUMES.get(name)
        # The schedule has the tasks of the mode, and migrations its tables.
        assert given["BILLING_MODE"] == "${BILLING_MODE:-disabled}"
    assert {name for name, service in SERVICES.items() if "GATEWAY_ROLE" in service["environment"]} == HELPERS


def test_metrics_are_asked_for() -> None:
    assert SERVICES["metrics"]["profiles"] == ["metrics"]
    assert {name for name, service in SERVICES.items() if "profiles" in service} == {"caddy", "metrics"}


def test_what_may_come_as_a_file_is_not_asked_for() -> None:
    asked = set(re.findall(r"\$\{([A-Z_]+):\?", TEXT))
    assert asked == {"POSTGRES_PASSWORD", "REDIS_PASSWORD"}
    for variable in MAY_BE_FILES:
        assert f"{variable}: ${{{variable}:?" not in TEXT


def test_redis_is_bounded_and_evicts_nothing() -> None:
    command = " ".join(SERVICES["redis"]["command"])
    assert "--maxmemory-policy noeviction" in command
    assert re.search(r"--maxmemory \S", command)
    assert SERVICES["redis"]["environment"]["REDIS_MAXMEMORY"]


def test_the_worker_asks_for_its_own_health() -> None:
    assert SERVICES["worker"]["healthcheck"]["test"][-2:] == ["health", "worker"]


@pytest.mark.parametrize("name", ["web", "worker", "shipping"])
def test_the_engine_waits_until_a_stop_has_ended(name: str) -> None:
    given = re.fullmatch(r"\$\{STOP_GRACE_PERIOD:-(\d+)s\}", SERVICES[name]["stop_grace_period"])
    assert given is not None
    assert int(given[1]) >= stopping.DRAIN_SECONDS + CLOSING_S


def test_one_process_for_each_container_is_the_usual_shape() -> None:
    assert SERVICES["web"]["environment"]["WEB_PROCESSES"] == "${WEB_PROCESSES:-1}"


def test_images_can_be_pinned() -> None:
    images = {name: service["image"] for name, service in SERVICES.items()}
    assert all(re.fullmatch(r"\$\{[A-Z]+_IMAGE:-[a-z]+:\S+\}", image) for image in images.values())

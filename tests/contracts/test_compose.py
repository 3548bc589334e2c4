"""compose.yaml: what every container is held to, and who gets which secret."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "compose.yaml").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
HELPERS = {"migrate", "catalog", "beat"}
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


def test_only_postgresql_adds_capabilities() -> None:
    assert {name for name, service in SERVICES.items() if "cap_add" in service} == {"postgres"}


def test_helpers_get_no_secret_but_the_stores() -> None:
    assert {name for name, service in SERVICES.items() if "env_file" in service} == {"web", "worker", "shipping"}
    for name in HELPERS:
        given = SERVICES[name]["environment"]
        assert given["GATEWAY_ROLE"] == "helper"
        assert {variable for variable in given if re.search("SECRET|KEY|TOKEN|OIDC|STRIPE", variable)} == set()
        assert "volumes" not in SERVICES[name]
        # The schedule has the tasks of the mode, and migrations its tables.
        assert given["BILLING_MODE"] == "${BILLING_MODE:-disabled}"
    assert {name for name, service in SERVICES.items() if "GATEWAY_ROLE" in service["environment"]} == HELPERS


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


def test_images_can_be_pinned() -> None:
    images = {name: service["image"] for name, service in SERVICES.items()}
    assert all(re.fullmatch(r"\$\{[A-Z]+_IMAGE:-[a-z]+:\S+\}", image) for image in images.values())
    assert set(re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), flags=re.M)) == {"${PYTHON_IMAGE}"}

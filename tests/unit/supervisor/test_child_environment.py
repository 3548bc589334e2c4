"""The variables that reach each process. Contract: 1, 5"""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.supervisor.child_environment import demo_environment, provider_environment, service_environment
from gateway.supervisor.options import read_options

SECRETS = {"SECRET_KEY": "made-key", "CREDENTIAL_KEYS": "first:made", "OIDC_RP_CLIENT_SECRET": "made-secret"}
CONTRACT_VARIABLES = [
    "SECRET_KEY",
    "BASE_URL",
    "ALLOWED_HOSTS",
    "DATABASE_URL",
    "REDIS_URL",
    "CREDENTIAL_KEYS",
    "TOKEN_SIGNING_KEYS",
    "OIDC_OP_DISCOVERY_URL",
    "OIDC_RP_CLIENT_ID",
    "OIDC_RP_CLIENT_SECRET",
    "STRIPE_SECRET_KEY",
    "STRIPE_WEBHOOK_SECRET",
    "STRIPE_API_BASE",
    "STRIPE_PRICE_ID",
    "BILLING_MODE",
    "DEVICE_CODE_TTL",
    "DEVICE_POLL_INTERVAL",
    "HEALTH_PROBE_INTERVAL",
    "HEALTH_LATENCY_THRESHOLD_MS",
    "VENDOR_TOOL_CONFIG",
    "TRUSTED_PROXIES",
    "ALLOWED_ORIGINS",
    "ALLOW_PRIVATE_ENDPOINTS",
    "AUDIT_RETENTION_DAYS",
    "LEGACY_CODES",
]


def environment_of(environ: dict[str, str]) -> dict[str, str]:
    return service_environment(read_options(environ, Path("/project")), environ, SECRETS)


def test_embedded_default() -> None:
    environment = environment_of({})
    assert environment["GATEWAY_MODE"] == "embedded"
    assert environment["DJANGO_SETTINGS_MODULE"] == "gateway.settings"
    assert environment["VAR"] == "/project/var"
    assert environment["BASE_URL"] == "http://127.0.0.1:8000"
    assert environment["SECRET_KEY"] == "made-key"
    assert environment["OIDC_OP_DISCOVERY_URL"] == "http://127.0.0.1:9400/.well-known/openid-configuration"
    assert (environment["OIDC_RP_CLIENT_ID"], environment["OIDC_RP_CLIENT_SECRET"]) == ("gateway", "made-secret")
    assert "DATABASE_URL" not in environment


@pytest.mark.parametrize("name", CONTRACT_VARIABLES)
def test_every_variable_of_the_contract_reaches_the_service(name: str) -> None:
    value = "https://set.example.com" if name == "BASE_URL" else "set by the caller"
    assert environment_of({name: value})[name] == value


def test_a_secret_from_a_file_is_not_overruled() -> None:
    environment = environment_of({"SECRET_KEY_FILE": "/run/secrets/key"})
    assert "SECRET_KEY" not in environment
    assert environment["SECRET_KEY_FILE"] == "/run/secrets/key"


def test_an_empty_variable_does_not_reach_the_service() -> None:
    assert "DATABASE_URL" not in environment_of({"DATABASE_URL": ""})


def test_settings_of_a_test_run_and_of_make_do_not_leak() -> None:
    environment = environment_of({"DJANGO_SETTINGS_MODULE": "tests.settings", "MAKEFLAGS": "w", "MAKELEVEL": "1"})
    assert environment["DJANGO_SETTINGS_MODULE"] == "gateway.settings"
    assert not {"MAKEFLAGS", "MAKELEVEL"} & environment.keys()


def test_the_mode_may_be_chosen() -> None:
    assert environment_of({"GATEWAY_MODE": "production"})["GATEWAY_MODE"] == "production"


@pytest.mark.parametrize("environ", [{"DEMO": "0"}, {"OIDC_OP_DISCOVERY_URL": "https://id.example.com/x"}])
def test_without_the_demo_provider_its_secret_stays_out(environ: dict[str, str]) -> None:
    environment = environment_of(environ)
    assert "OIDC_RP_CLIENT_SECRET" not in environment
    assert environment.get("OIDC_OP_DISCOVERY_URL") == environ.get("OIDC_OP_DISCOVERY_URL")


def test_demo_servers_get_no_secret_of_the_service() -> None:
    environ = {"PATH": "/bin", "SECRET_KEY": "k", "DATABASE_URL": "d", "CREDENTIAL_KEYS": "c"}
    assert demo_environment(environ) == {"PATH": "/bin", "PYTHONUNBUFFERED": "1"}
    assert provider_environment(environ, "shared").get("DEMO_IDP_CLIENT_SECRET") == "shared"
    assert not {"SECRET_KEY", "DATABASE_URL", "CREDENTIAL_KEYS"} & provider_environment(environ, "shared").keys()

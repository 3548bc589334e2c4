"""`manage make_env`: a file that a deployment starts with."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.container.make_env import EXAMPLE, filled, made_values
from gateway.supervisor.secret_store import parse_secrets

ROOT = Path(__file__).resolve().parents[3]
BASE_URL = "https://gateway.example.com"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """As in a container of the image: without a variable of the service."""
    environment = {"PATH": os.environ["PATH"]}
    command = [sys.executable, "manage.py", "make_env", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)


def test_each_run_makes_other_secrets_and_leaves_what_it_cannot_know() -> None:
    first, second = (parse_secrets(run(BASE_URL).stdout) for _ in range(2))
    made = {"SECRET_KEY", "CREDENTIAL_KEYS", "POSTGRES_PASSWORD", "REDIS_PASSWORD"}
    assert {name for name in first if first[name] != second[name]} == made
    assert first["BASE_URL"] == BASE_URL
    assert {name for name, value in first.items() if not value} == {
        "OIDC_OP_DISCOVERY_URL",
        "OIDC_RP_CLIENT_ID",
        "OIDC_RP_CLIENT_SECRET",
        "OIDC_PROVIDER_NAME",
    }
    for name in ("POSTGRES_PASSWORD", "REDIS_PASSWORD"):
        assert re.fullmatch(r"[A-Za-z0-9]{40}", first[name])
    key_id, _, key = first["CREDENTIAL_KEYS"].partition(":")
    assert (key_id, len(base64.b64decode(key))) == ("first", 32)


def test_production_starts_with_it_once_it_is_filled_in() -> None:
    provider = {
        "OIDC_OP_DISCOVERY_URL": "https://idp.example/.well-known/openid-configuration",
        "OIDC_RP_CLIENT_ID": "gateway",
        "OIDC_RP_CLIENT_SECRET": "of the provider",
    }
    given = parse_secrets(run(BASE_URL).stdout) | provider
    stores = {"TRUSTED_PROXIES": "10.0.0.1", "DATABASE_URL": "postgres://gateway@127.0.0.1:9/gateway"}
    done = subprocess.run(
        [sys.executable, "-c", "import gateway.settings"],
        cwd=ROOT,
        env={**given, **stores, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["http://gateway.example.com"],
        ["https://"],
        ["https://gateway.example.com/"],
        ["https://gateway.example.com/path"],
        ["https://me@gateway.example.com"],
        ["https://gateway.example.com?x=1"],
        ["https://[::1"],
        [BASE_URL, "more"],
    ],
)
def test_a_wrong_address_makes_nothing(wrong: list[str]) -> None:
    done = run(*wrong)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "usage: manage make_env https://gateway.example.com > .env\n"


def test_what_is_filled_in_already_stays() -> None:
    assert filled("A=\nB=kept\n#C=\n", {"A": "1", "B": "2", "C": "3"}) == "A=1\nB=kept\n#C=\n"


def test_the_example_lists_what_compose_asks_for() -> None:
    listed = set(re.findall(r"^#?([A-Z_]+)=", EXAMPLE.read_text(), flags=re.MULTILINE))
    assert set(made_values(BASE_URL)) <= listed
    asked = set(re.findall(r"\$\{([A-Z_]+):\?", (ROOT / "compose.yaml").read_text()))
    assert asked <= listed

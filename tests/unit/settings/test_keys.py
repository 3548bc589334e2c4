"""Keys of a key service are unwrapped at the start; without it, or half configured, one sentence ends the start."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.keys.vault import VaultTransit
from tests.fakes.aws_kms import FakeKms, fake_kms
from tests.fakes.vault_transit import TOKEN, FakeVault, vault_transit

pytestmark = pytest.mark.one_back_end
ROOT = Path(__file__).resolve().parents[3]
SECRETS = {"SECRET_KEY": "for these tests only: 0123456789abcdefghijk"}
PRODUCTION = {
    **SECRETS,
    "BASE_URL": "https://gateway.example.com",
    "DATABASE_URL": "postgres://gateway@127.0.0.1:9/gateway",
    "OIDC_OP_DISCOVERY_URL": "https://idp.example.com/.well-known/openid-configuration",
    "OIDC_RP_CLIENT_ID": "gateway",
    "OIDC_RP_CLIENT_SECRET": "of the test",
}
EMBEDDED = {**SECRETS, "GATEWAY_MODE": "embedded"}
SHOW = "from django.conf import settings as s; print(s.CREDENTIAL_KEYRING, s.KEYS_WRAPPED_BY, s.KEY_SERVICES)"
KEY = os.urandom(32)
SEALED = "CREDENTIAL_KEYS cannot be unwrapped: Vault is sealed or under maintenance (status 503 for key 2027)"
KMS_REFUSES = "CREDENTIAL_KEYS cannot be unwrapped: AWS KMS refuses to"
PLAIN = base64.b64encode(os.urandom(32)).decode()


def run(arguments: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {**variables, "PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "gateway.settings"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )


def start(variables: dict[str, str]) -> tuple[int, str]:
    done = run(["-c", SHOW], variables)
    said = done.stdout + done.stderr
    assert KEY.hex() not in said
    assert TOKEN not in said
    return done.returncode, said


@pytest.fixture
def vault() -> Iterator[FakeVault]:
    with vault_transit() as running:
        yield running


@pytest.fixture
def variables(vault: FakeVault) -> dict[str, str]:
    """An environment whose first key Vault has wrapped."""
    wrapped = VaultTransit(address=vault.address, token=TOKEN, key_name="gateway").wrap("2027", KEY)
    return {
        **EMBEDDED,
        "CREDENTIAL_KEYS": f"2027:{wrapped},2026:{PLAIN}",
        "VAULT_ADDR": vault.address,
        "VAULT_TOKEN": TOKEN,
        "VAULT_TRANSIT_KEY": "gateway",
    }


def test_vault_opens_the_keys_at_the_start(variables: dict[str, str]) -> None:
    status, said = start(variables)
    assert status == 0, said
    assert "Keyring(current_id='2027', ids=['2026', '2027'])" in said
    assert "{'2027': 'vault', '2026': ''}" in said


def test_the_token_may_be_in_a_file(variables: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    del variables["VAULT_TOKEN"]
    assert start({**variables, "VAULT_TOKEN_FILE": str(tmp_path / "token")})[0] == 0
    assert start({**variables, "VAULT_TOKEN_FILE": str(tmp_path / "none")}) == (
        78,
        "Cannot start: VAULT_TOKEN_FILE names a file that cannot be read (No such file or directory).\n",
    )


def test_a_vault_that_is_away_or_refuses_ends_the_start(vault: FakeVault, variables: dict[str, str]) -> None:
    vault.is_sealed = True
    assert start(variables) == (
        78,
        f"Cannot start: {SEALED}.\n",
    )
    status, said = start({**variables, "VAULT_ADDR": "http://127.0.0.1:9"})
    assert (status, said.startswith("Cannot start: CREDENTIAL_KEYS cannot be unwrapped: Vault does not answer")) == (
        78,
        True,
    )


def test_the_doctor_names_it(vault: FakeVault, variables: dict[str, str], tmp_path: Path) -> None:
    vault.is_sealed = True
    done = run(["manage.py", "doctor", "--json"], {**variables, "VAR": str(tmp_path)})
    [verdict] = json.loads(done.stdout)
    assert (done.returncode, verdict["status"]) == (1, "error")
    assert SEALED in verdict["message"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"VAULT_TRANSIT_KEY": ""}, "CREDENTIAL_KEYS is missing or weak: key 2027 is wrapped by vault, and VAULT_TRAN"),
        (
            {"VAULT_TRANSIT_KEY": "", "VAULT_TRANSIT_MOUNT": "x"},
            "VAULT_TRANSIT_KEY must be set, because VAULT_TRANSIT_M",
        ),
        ({"VAULT_ADDR": ""}, "VAULT_ADDR must be set, because VAULT_TRANSIT_KEY is."),
        ({"VAULT_TOKEN": ""}, "VAULT_TOKEN must be set, because VAULT_TRANSIT_KEY is."),
        ({"VAULT_ADDR": "vault.example.com"}, "VAULT_ADDR must be an address"),
        ({"VAULT_ADDR": "https://vault.example.com/v1"}, "VAULT_ADDR must be an address"),
        ({"VAULT_TOKEN": "two words"}, "VAULT_TOKEN must be one token"),
        ({"VAULT_TRANSIT_KEY": "../sys"}, "VAULT_TRANSIT_KEY must be a name"),
        ({"VAULT_TRANSIT_MOUNT": "a?b"}, "VAULT_TRANSIT_MOUNT must be a name"),
        ({"VAULT_NAMESPACE": "a b"}, "VAULT_NAMESPACE must be the path"),
        ({"VAULT_CACERT": "/nowhere.pem"}, "VAULT_CACERT names no readable file of certificates."),
        ({"VAULT_CACERT": __file__}, "VAULT_CACERT names no readable file of certificates."),
        ({"KEY_SERVICE_TIMEOUT": "0"}, "KEY_SERVICE_TIMEOUT must be between 1 and 60"),
        ({"AWS_KMS_KEY_ID": "a key"}, "AWS_KMS_KEY_ID must be the id, ARN or alias"),
        ({"CREDENTIAL_KEYS": "2027:gcp:abc"}, "CREDENTIAL_KEYS is missing or weak: key 2027 is wrapped by something"),
        ({"KEY_AGE_WARNING_DAYS": "0"}, "KEY_AGE_WARNING_DAYS must be between 1 and"),
    ],
)
def test_half_configured(variables: dict[str, str], change: dict[str, str], said: str) -> None:
    status, found = start({**variables, **change})
    assert (status, found.count("\n")) == (78, 1)
    assert found.startswith(f"Cannot start: {said}")


def test_production_asks_vault_over_tls_unless_it_is_on_the_same_host(variables: dict[str, str]) -> None:
    production = {**variables, **PRODUCTION, "GATEWAY_MODE": "production"}
    assert start(production)[0] == 0
    assert start({**production, "VAULT_ADDR": "http://vault.example.com:8200"}) == (
        78,
        "Cannot start: VAULT_ADDR must begin with https://, unless it is this host's own.\n",
    )


def test_a_helper_asks_no_key_service(vault: FakeVault, variables: dict[str, str]) -> None:
    vault.seen.clear()
    for name in ("CREDENTIAL_KEYS", "VAULT_TOKEN"):
        del variables[name]
    assert start({**variables, "GATEWAY_ROLE": "helper", "VAULT_TOKEN_FILE": "/only/where/keys/are"})[0] == 0
    assert vault.seen == []


def of_kms(kms: FakeKms) -> dict[str, str]:
    return {
        **EMBEDDED,
        "AWS_KMS_KEY_ID": kms.key_id,
        "AWS_ENDPOINT_URL_KMS": kms.address,
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "of-the-test",
        "AWS_SECRET_ACCESS_KEY": "of-the-test",
    }


def test_kms_opens_what_new_master_key_has_wrapped(tmp_path: Path) -> None:
    with fake_kms() as kms:
        variables = {**of_kms(kms), "VAR": str(tmp_path)}
        made = run(["manage.py", "new_master_key", "2027"], {**variables, "CREDENTIAL_KEYS": f"2026:{PLAIN}"})
        assert (made.returncode, made.stdout.count("\n")) == (0, 1), made.stderr
        entry = made.stdout.strip()
        assert entry.startswith("2027:aws-kms:")
        status, said = start({**variables, "CREDENTIAL_KEYS": f"{entry},2026:{PLAIN}"})
        assert (status, "{'2027': 'aws-kms', '2026': ''}" in said) == (0, True), said
        # The context of the wrapping names the key.
        assert start({**variables, "CREDENTIAL_KEYS": entry.replace("2027", "2028")}) == (
            78,
            f"Cannot start: {KMS_REFUSES} decrypt key 2028 (InvalidCiphertextException).\n",
        )
        kms.refusal = "AccessDeniedException"
        assert start({**variables, "CREDENTIAL_KEYS": entry}) == (
            78,
            f"Cannot start: {KMS_REFUSES} decrypt key 2027 (AccessDeniedException).\n",
        )

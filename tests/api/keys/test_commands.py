"""`keys` shows which keys there are and warns of old ones, `new_master_key` makes one; neither shows a key in use."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from credentials.models import OrganizationDataKey
from gateway.doctor import key_checks
from gateway.doctor.key_ages import current_ages
from gateway.doctor.verdict import Status
from gateway.keys.holders import Holder
from gateway.keys.presence import Presence, fingerprint
from gateway.keys.vault import VaultTransit
from gateway.keys.wrapping import open_keyring
from gateway.lib import clock
from gateway.lib.crypto import Keyring
from gateway.metrics_server import deployment
from oauth_ext.jwt import keys as signing
from oauth_ext.jwt.rotation import rotate_signing_key
from tests.factories.credentials import Setting
from tests.fakes.vault_transit import TOKEN, FakeVault, vault_transit

OLD, NEW = os.urandom(32), os.urandom(32)


@pytest.fixture
def vault() -> Iterator[FakeVault]:
    with vault_transit() as running:
        yield running


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=out)
    return out.getvalue()


def listed() -> dict[tuple[str, str], dict[str, Any]]:
    found = json.loads(run("keys", "--json"))["keys"]
    return {(key["kind"], key["name"]): key for key in found}


@pytest.fixture
def deployed(setting: Setting, settings: LazySettings) -> Setting:
    """Two organizations sealed under `old`, a signing key, and a process that runs."""
    settings.CREDENTIAL_KEYRING = Keyring("old", {"old": OLD})
    settings.KEYS_WRAPPED_BY = {"old": ""}
    setting.store()
    setting.store(organization=setting.cast.other_org)
    signing.forget()
    signing.load_key_set()
    Presence("web").note()
    return setting


def test_every_key_with_its_state_and_its_rows(deployed: Setting, settings: LazySettings) -> None:
    kid = signing.load_key_set().signer.kid
    name = fingerprint(settings.SECRET_KEY)
    assert listed().keys() == {("master", "old"), ("secret", name), ("signing", kid)}
    printed = run("keys")
    assert "last rotation, master: none is known" in printed
    assert "1 running processes have the master key old" in printed
    assert "warning" not in printed
    master = listed()["master", "old"]
    assert (master["state"], master["rows"], master["isOld"]) == ("current", 3, False)


def test_a_key_that_rows_need_and_nobody_has(deployed: Setting) -> None:
    OrganizationDataKey.objects.filter(organization=deployed.cast.other_org).update(key_id="lost")
    lost = listed()["master", "lost"]
    assert (lost["state"], lost["rows"], lost["since"]) == ("missing", 1, None)
    assert "missing" in run("keys")


def test_while_a_rotation_goes_on_and_after_it(deployed: Setting, settings: LazySettings) -> None:
    settings.CREDENTIAL_KEYRING = Keyring("new", {"new": NEW, "old": OLD})
    settings.KEYS_WRAPPED_BY = {"new": "vault", "old": ""}
    states = {name: (key["state"], key["wrappedBy"]) for (kind, name), key in listed().items() if kind == "master"}
    assert states == {"new": ("waiting", "vault"), "old": ("current", None)}
    assert "without it: web" in run("keys")
    with pytest.raises(
        CommandError, match=r"the first key is not new\. Start it with the order new,old in CREDENTIAL_KEYS\."
    ) as caught:
        call_command("rotate_master_key", wait=0.0)
    assert caught.value.returncode == 1
    assert listed()["master", "old"]["rows"] == 3, "nothing was sealed with a key that a process lacks"
    with time_machine.travel(clock.now() + timedelta(minutes=3), tick=False):
        Presence("web").note()
        run("rotate_master_key")
        states = {name: (key["state"], key["rows"]) for (kind, name), key in listed().items() if kind == "master"}
        assert states == {"new": ("current", 3), "old": ("former", 0)}
        assert f"last rotation, master: {clock.rfc3339(clock.now())}" in run("keys")


def test_keys_that_are_old(deployed: Setting, settings: LazySettings) -> None:
    settings.KEY_AGE_WARNING_DAYS = 30
    assert [finding.status for finding in key_checks.key_ages()] == [Status.OK]
    with time_machine.travel(clock.now() + timedelta(days=31, hours=1), tick=False):
        signing.forget()
        printed = run("keys")
        assert "warning: the master key old is 31 days old; KEY_AGE_WARNING_DAYS is 30." in printed
        assert "warning: the secret key" in printed
        assert "warning: the signing key" in printed
        found = {finding.message.split(" has been")[0]: finding.status for finding in key_checks.key_ages()}
        assert found == {"The master key old": Status.WARNING, "SECRET_KEY": Status.WARNING}
        assert [finding.status for finding in key_checks.signing_keys()] == [Status.WARNING]


def test_a_former_secret_is_named_once_its_time_is_over(deployed: Setting, settings: LazySettings) -> None:
    settings.SECRET_KEY_FALLBACKS = ["a former value of more than thirty-two characters"]
    assert [finding.status for finding in key_checks.key_ages()] == [Status.OK]
    with time_machine.travel(clock.now() + timedelta(hours=12, minutes=1), tick=False):
        (found,) = key_checks.key_ages()
        assert found.status == Status.WARNING
        assert found.message.startswith("SECRET_KEY_FALLBACKS still accepts 1 former value; SECRET_KEY has been in use")
        assert "thirty-two" not in found.message
        settings.SECRET_KEY_FALLBACKS = []
        assert [finding.status for finding in key_checks.key_ages()] == [Status.OK]


def test_a_former_signing_key_and_one_that_waits(deployed: Setting) -> None:
    first = signing.load_key_set().signer.kid
    second = rotate_signing_key().kid
    assert {listed()["signing", first]["state"], listed()["signing", second]["state"]} == {"current", "waiting"}
    with time_machine.travel(clock.now() + timedelta(hours=2), tick=False):
        assert {listed()["signing", first]["state"], listed()["signing", second]["state"]} == {"former", "current"}
        assert "last rotation, signing: none is known" not in run("keys")


def test_signing_keys_of_the_environment(deployed: Setting, settings: LazySettings) -> None:
    settings.TOKEN_SIGNING_KEYS = "k-2:x,k-1:x"
    assert listed()["signing", "k-2"]["since"] is None
    Presence("web").note()
    assert listed()["signing", "k-2"]["since"] is not None
    assert listed()["signing", "k-1"]["state"] == "former"


def test_ages_are_a_figure(deployed: Setting) -> None:
    with time_machine.travel(clock.now() + timedelta(days=2), tick=False):
        assert current_ages(clock.now()).keys() == {"master", "secret", "signing"}
        [metric] = [each for each in deployment._read() if each.name == "gateway_key_age_seconds"]
        assert {sample.labels["kind"]: sample.value > 86_400 for sample in metric.samples} == {
            "master": True,
            "secret": True,
            "signing": True,
        }


def test_nothing_is_known_before_the_first_process(db: None) -> None:
    assert {key["since"] for key in listed().values()} == {None}
    assert current_ages(clock.now()) == {}


def test_nothing_that_is_shown_is_a_key(deployed: Setting, settings: LazySettings) -> None:
    printed = run("keys") + run("keys", "--json")
    secrets = (OLD.hex(), base64.b64encode(OLD).decode(), settings.SECRET_KEY, settings.SECRET_KEY[:12])
    assert not [secret for secret in secrets if secret in printed]


def test_the_doctor_names_processes_without_the_key(deployed: Setting, settings: LazySettings) -> None:
    assert [finding.status for finding in key_checks.key_holders()] == [Status.OK]
    settings.CREDENTIAL_KEYRING = Keyring("new", {"new": NEW, "old": OLD})
    [waiting] = key_checks.key_holders()
    assert (waiting.status, "new seals once all processes have it" in waiting.message) == (Status.WARNING, True)
    Holder("worker", key_names=lambda: ["new"]).note()
    lacking, _ = key_checks.key_holders()
    assert (lacking.status, "old seals, and these processes lack it: worker" in lacking.message) == (Status.ERROR, True)


def test_the_doctor_names_processes_with_another_order(deployed: Setting, settings: LazySettings) -> None:
    both = {"old": OLD, "new": NEW}
    settings.CREDENTIAL_KEYRING = Keyring("old", both)
    Holder("worker", key_names=lambda: ["new", "old"]).note()
    [finding] = key_checks.key_holders()
    assert finding.status == Status.WARNING
    assert "begins with old here and with another key in these processes: worker" in finding.message
    assert finding.message.endswith(". old seals until it begins with the same key everywhere.")


def test_the_doctor_names_a_key_that_is_not_wrapped(deployed: Setting, settings: LazySettings) -> None:
    settings.KEYS_WRAPPED_BY = {"new": "vault", "old": ""}
    [finding] = key_checks.key_holders()
    assert (finding.status, "CREDENTIAL_KEYS has old as it is" in finding.message) == (Status.WARNING, True)


def test_a_new_key_as_it_is(settings: LazySettings) -> None:
    entry = run("new_master_key", "2027").splitlines()[-1]
    assert dict(Keyring.parse(entry).keys).keys() == {"2027"}
    assert run("new_master_key", "2027").splitlines()[-1] != entry


def test_a_new_key_that_nobody_sees(settings: LazySettings, vault: FakeVault) -> None:
    service = VaultTransit(address=vault.address, token=TOKEN, key_name="gateway")
    settings.KEY_SERVICES = {"vault": service}
    printed = run("new_master_key", "2027")
    assert printed.startswith("2027:vault:v1:")
    assert printed.count("\n") == 1
    [key] = open_keyring(printed.strip(), {"vault": service}).keys.values()
    assert base64.b64encode(key).decode() not in printed
    vault.is_sealed = True
    with pytest.raises(CommandError, match="The key was not wrapped: Vault is sealed") as caught:
        call_command("new_master_key", "2027")
    assert caught.value.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["not an id"], "cannot be the id"),
        (["test-1"], "already has a key test-1"),
        (["2027", "--with", "vault"], "VAULT_TRANSIT_KEY is not set"),
        (["2027", "--with", "aws-kms"], "AWS_KMS_KEY_ID is not set"),
    ],
)
def test_a_key_that_is_not_made(arguments: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words) as caught:
        call_command("new_master_key", *arguments)
    assert caught.value.returncode == 2


def test_two_services_and_none_chosen(settings: LazySettings) -> None:
    settings.KEY_SERVICES = {"vault": None, "aws-kms": None}
    with pytest.raises(CommandError, match="--with and one of: vault, aws-kms"):
        call_command("new_master_key", "2027")

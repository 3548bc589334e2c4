"""Rotating the key-encryption key: repeatable, resumable, readable throughout, and honest about what is left."""

from __future__ import annotations

import os
from io import StringIO

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from credentials import sealing
from credentials.data_key_cache import DataKeyCache
from credentials.models import Credential, OrganizationDataKey
from credentials.sealing import open_fields, wrapped_keys
from credentials.selectors import credential_refs
from credentials.services.master_key import DATA_KEYS, KeyIdCount, rows_per_key_id
from gateway.coordination import epochs
from gateway.keys.resealing import reseal
from gateway.lib.crypto import Keyring
from oauth_ext.jwt import keys
from oauth_ext.models import SigningKey
from orgs.models import Membership, Organization
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import create_invitation, revoke_invitation
from tests.factories.credentials import SECRET, Setting

OLD, NEW = os.urandom(32), os.urandom(32)


@pytest.fixture
def rotating(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> Setting:
    """Seven organizations sealed under `old`; then `new` becomes current and `old` stays."""
    monkeypatch.setattr(settings, "CREDENTIAL_KEYRING", Keyring("old", {"old": OLD}))
    organizations = [setting.cast.org, setting.cast.other_org]
    organizations += [Organization.objects.create(name=f"Customer {number}") for number in range(5)]
    for organization in organizations:
        if organization != setting.cast.other_org:
            Membership.objects.get_or_create(
                organization=organization, user=setting.cast.user("owner"), defaults={"role": "owner"}
            )
        setting.store(organization=organization)
    monkeypatch.setattr(settings, "CREDENTIAL_KEYRING", Keyring("new", {"new": NEW, "old": OLD}))
    return setting


def readable() -> int:
    """How many credentials open with what is stored and configured now."""
    opened = 0
    for organization in Organization.objects.all():
        wrapped = wrapped_keys(organization.id)
        for ref in credential_refs(organization.id):
            fields = open_fields(
                ref, organization_id=organization.id, wrapped=wrapped, cache=DataKeyCache(max_entries=10)
            )
            opened += fields == {"apiKey": SECRET}
    return opened


def run(command: str = "rotate_master_key", **options: object) -> str:
    """The command's output; its failure is raised."""
    out = StringIO()
    call_command(command, stdout=out, stderr=out, **options)
    return out.getvalue()


def key_ids() -> list[str]:
    return sorted(OrganizationDataKey.objects.values_list("key_id", flat=True))


def test_every_data_key_moves_and_no_credential_does(rotating: Setting) -> None:
    before = dict(Credential.objects.values_list("id", "sealed"))
    printed = run()
    assert key_ids() == ["new"] * 7
    assert {key: bytes(value) for key, value in Credential.objects.values_list("id", "sealed")} == {
        key: bytes(value) for key, value in before.items()
    }
    assert readable() == 7
    assert "done: 7 re-wrapped, 0 failed" in printed
    assert "old: 0 data keys" in printed


def test_the_old_key_is_not_needed_afterwards(rotating: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    monkeypatch.setattr(settings, "CREDENTIAL_KEYRING", Keyring("new", {"new": NEW}))
    assert readable() == 7


def test_a_second_run_changes_nothing(rotating: Setting) -> None:
    run()
    wrapped = [bytes(row.wrapped_key) for row in OrganizationDataKey.objects.order_by("pk")]
    assert "done: 0 re-wrapped, 0 failed" in run()
    assert [bytes(row.wrapped_key) for row in OrganizationDataKey.objects.order_by("pk")] == wrapped


def test_an_interrupted_run_is_readable_and_the_next_one_finishes(rotating: Setting) -> None:
    batches = reseal(DATA_KEYS, batch_size=3)
    next(batches)
    batches.close()
    assert key_ids() == ["new"] * 3 + ["old"] * 4
    assert readable() == 7
    assert "done: 4 re-wrapped, 0 failed" in run(batch_size=3)
    assert readable() == 7


def test_progress_is_printed_by_batch(rotating: Setting) -> None:
    printed = run(batch_size=3).splitlines()
    assert printed[:10] == [
        "3 data keys re-wrapped",
        "6 data keys re-wrapped",
        "7 data keys re-wrapped",
        "0 signing keys sealed again",
        "0 invitation tokens sealed again",
        "0 refresh tokens of the identity provider sealed again",
        "0 log shipping configurations sealed again",
        "0 secrets of alert webhooks sealed again",
        "0 revocations at vendors sealed again",
        "done: 7 re-wrapped, 0 failed",
    ]


def test_signing_keys_go_along(rotating: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    SigningKey.objects.all().delete()
    keys.forget()
    monkeypatch.setattr(settings, "CREDENTIAL_KEYRING", Keyring("old", {"old": OLD}))
    before = keys.load_key_set()
    monkeypatch.setattr(settings, "CREDENTIAL_KEYRING", Keyring("new", {"new": NEW, "old": OLD}))
    printed = run()
    assert "1 signing keys sealed again" in printed
    assert "new: 1 signing keys" in printed
    keys.forget()
    monkeypatch.setattr(settings, "CREDENTIAL_KEYRING", Keyring("new", {"new": NEW}))
    assert keys.load_key_set().public_jwks == before.public_jwks


def test_tokens_of_invitations_go_along(rotating: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "CREDENTIAL_KEYRING", Keyring("old", {"old": OLD}))
    actor, organization = rotating.cast.user("owner"), rotating.cast.org
    opened = create_invitation(actor=actor, organization=organization)
    token, revoked = token_of(opened), create_invitation(actor=actor, organization=organization)
    revoke_invitation(actor=actor, organization=organization, invitation_id=revoked.id)
    monkeypatch.setattr(settings, "CREDENTIAL_KEYRING", Keyring("new", {"new": NEW, "old": OLD}))
    assert "old: 2 invitation tokens" in run(check=True)
    printed = run()
    assert "2 invitation tokens sealed again" in printed
    assert "new: 2 invitation tokens" in printed
    assert token is not None
    assert token not in printed
    monkeypatch.setattr(settings, "CREDENTIAL_KEYRING", Keyring("new", {"new": NEW}))
    opened.refresh_from_db()
    assert token_of(opened) == token
    assert "0 invitation tokens sealed again" in run()


def test_check_counts_and_changes_nothing(rotating: Setting) -> None:
    list(reseal(DATA_KEYS, batch_size=7))
    OrganizationDataKey.objects.filter(organization=rotating.cast.org).delete()
    rotating.store()
    before = list(OrganizationDataKey.objects.order_by("pk").values_list("key_id", "wrapped_key"))
    printed = run(check=True)
    assert printed.splitlines() == ["new: 7 data keys", "old: 0 data keys"]
    assert list(OrganizationDataKey.objects.order_by("pk").values_list("key_id", "wrapped_key")) == before


def test_counts_name_keys_that_are_not_configured(rotating: Setting) -> None:
    OrganizationDataKey.objects.filter(organization=rotating.cast.org).update(key_id="lost")
    assert sorted(rows_per_key_id(), key=lambda count: count.key_id) == [
        KeyIdCount("lost", 1, configured=False),
        KeyIdCount("new", 0, configured=True),
        KeyIdCount("old", 6, configured=True),
    ]
    with pytest.raises(CommandError) as caught:
        run(check=True)
    assert caught.value.returncode == 1


@pytest.mark.parametrize("damage", [{"key_id": "lost"}, {"wrapped_key": b"damaged"}])
def test_a_key_that_does_not_open_is_left_named_and_does_not_stop_the_rest(
    rotating: Setting, damage: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    organization = rotating.cast.org
    OrganizationDataKey.objects.filter(organization=organization).update(**damage)
    before = OrganizationDataKey.objects.filter(organization=organization).values().get()
    with pytest.raises(CommandError) as caught:
        call_command("rotate_master_key", batch_size=2)
    assert caught.value.returncode == 1
    printed = capsys.readouterr()
    assert "done: 6 re-wrapped, 1 failed" in printed.out
    assert f"data key 1 of organization {organization.id} does not open" in printed.err
    assert OrganizationDataKey.objects.filter(organization=organization).values().get() == before
    assert key_ids().count("new") == 6


@pytest.mark.parametrize("batch_size", [0, -1, 10_001])
def test_a_senseless_batch_size_is_refused(rotating: Setting, batch_size: int) -> None:
    with pytest.raises(CommandError) as caught:
        run(batch_size=batch_size)
    assert caught.value.returncode == 2
    assert key_ids() == ["old"] * 7


def test_nothing_printed_is_a_key(rotating: Setting) -> None:
    printed = run(batch_size=1) + run(check=True)
    for key in (OLD, NEW):
        assert key.hex() not in printed
        assert repr(key) not in printed


def test_each_organizations_epoch_is_bumped_once_and_only_when_it_changed(
    committed_setting: Setting, bumped: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "CREDENTIAL_KEYRING", Keyring("old", {"old": OLD}))
    committed_setting.store()
    monkeypatch.setattr(settings, "CREDENTIAL_KEYRING", Keyring("new", {"new": NEW, "old": OLD}))
    committed_setting.store(organization=committed_setting.cast.other_org)
    bumped.clear()
    run()
    assert bumped == [epochs.organization(committed_setting.cast.org.id)]
    bumped.clear()
    run()
    assert bumped == []


def test_the_organizations_data_keys_stay_the_same_keys(rotating: Setting) -> None:
    def data_key() -> bytes:
        (wrapped,) = wrapped_keys(rotating.cast.org.id)
        aad = sealing.data_key_aad(rotating.cast.org.id, wrapped.version)
        return sealing.keyring().unwrap(wrapped.key_id, wrapped.wrapped, aad)

    before = data_key()
    run()
    assert data_key() == before

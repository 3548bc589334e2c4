"""Rows are sealed again in bounded batches; none is done twice, and a row that does not open stops no other."""

from __future__ import annotations

import os

import pytest
from django.conf import LazySettings
from django.core.management import call_command

from credentials.management.commands.rotate_master_key import OTHERS
from credentials.models import OrganizationDataKey
from credentials.sealing import data_key_aad
from credentials.services import master_key
from credentials.services.master_key import DATA_KEYS
from gateway.coordination import epochs
from gateway.keys.current import settle_master_key
from gateway.keys.resealing import per_key_id, reseal
from gateway.keys.sealed_columns import key_fields
from gateway.lib.crypto import Keyring
from orgs.models import Invitation, Organization
from orgs.services.invitation_sealing import TOKENS, token_of
from orgs.services.invitations import create_invitation
from tests.factories.cast import Cast
from tests.factories.races import at_once

OLD = Keyring("old", {"old": os.urandom(32)})
NEW = Keyring("new", {"new": os.urandom(32), **OLD.keys})


@pytest.fixture
def invitations(cast: Cast, settings: LazySettings) -> list[Invitation]:
    """Three of one organization and two of another, under the old key; the new one is first."""
    settings.CREDENTIAL_KEYRING = OLD
    made = [create_invitation(actor=cast.user("owner"), organization=cast.org) for _ in range(3)]
    made += [create_invitation(actor=cast.user("other_owner"), organization=cast.other_org) for _ in range(2)]
    settings.CREDENTIAL_KEYRING = NEW
    return made


def test_batches_are_bounded(invitations: list[Invitation]) -> None:
    tokens = [token_of(invitation) for invitation in invitations]
    assert [batch.resealed for batch in reseal(TOKENS, batch_size=2)] == [2, 2, 1]
    assert per_key_id(TOKENS) == {"new": 5}
    assert [token_of(Invitation.objects.get(pk=each.pk)) for each in invitations] == tokens
    assert list(reseal(TOKENS, batch_size=2)) == []


def test_a_row_that_does_not_open_is_named_and_stops_no_other(invitations: list[Invitation]) -> None:
    Invitation.objects.filter(pk=invitations[0].pk).update(token_sealed=b"damaged")
    batches = list(reseal(TOKENS, batch_size=1))
    assert len(batches) == 5
    assert sum(batch.resealed for batch in batches) == 4
    assert [row.pk for batch in batches for row in batch.failed] == [invitations[0].pk]
    assert per_key_id(TOKENS) == {"new": 4, "old": 1}


def test_every_sealed_column_is_sealed_again_or_ends_within_a_day() -> None:
    known = {(rows.rows().model._meta.label, rows.key_field) for rows in (DATA_KEYS, *OTHERS)}
    assert set(key_fields()) - known == {("web.IdempotencyRecord", "sealing_key_id")}
    assert known <= set(key_fields())


def data_keys(count: int, ring: Keyring) -> None:
    for number in range(count):
        organization = Organization.objects.create(name=f"Customer {number}")
        wrapped = ring.wrap(os.urandom(32), data_key_aad(organization.pk, 1))
        OrganizationDataKey.objects.create(
            organization=organization, version=1, key_id=ring.current_id, wrapped_key=wrapped
        )


def test_two_rotations_at_once_share_the_rows(transactional_db: None, settings: LazySettings) -> None:
    data_keys(12, OLD)
    settings.CREDENTIAL_KEYRING = NEW
    settle_master_key()
    done = at_once(*[lambda: sum(batch.resealed for batch in reseal(DATA_KEYS, batch_size=2))] * 2)
    assert sum(done) == 12
    assert per_key_id(DATA_KEYS) == {"new": 12}


def test_a_row_that_was_sealed_meanwhile_is_found(
    db: None, settings: LazySettings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process had read which key seals, and committed its row when the rotation was already past it."""
    data_keys(2, OLD)
    late = Organization.objects.create(name="Late")

    def commit_late(*names: str) -> None:
        if not OrganizationDataKey.objects.filter(organization=late).exists():
            wrapped = OLD.wrap(os.urandom(32), data_key_aad(late.pk, 1))
            row = OrganizationDataKey(pk=-1, organization=late, version=1, key_id="old", wrapped_key=wrapped)
            row.save(force_insert=True)

    monkeypatch.setattr(epochs, "bump_on_commit", commit_late)
    assert master_key.epochs is epochs
    settings.CREDENTIAL_KEYRING = NEW
    call_command("rotate_master_key", wait=0.0)
    assert per_key_id(DATA_KEYS) == {"new": 3}
    assert "3 data keys re-wrapped" in capsys.readouterr().out

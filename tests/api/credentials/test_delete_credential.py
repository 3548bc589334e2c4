"""Deleting, and shredding a whole organization."""

from __future__ import annotations

import pytest

from audit.models import AdminAuditEntry
from credentials import sealing
from credentials.credential_scope import CredentialScope
from credentials.errors import UnusableCredential, UnusableReason
from credentials.models import Credential, OrganizationDataKey
from credentials.sealing import open_fields, wrapped_keys
from credentials.selectors import credential_refs
from credentials.services.credentials import delete_credential
from credentials.services.shredding import shred_organization
from gateway.coordination import epochs
from gateway.lib.errors import NotFound
from tests.factories.credentials import SECRET, Setting


def test_a_deleted_credential_is_gone_and_the_others_stay(setting: Setting) -> None:
    gone, stays = setting.store(CredentialScope.TEAM), setting.store()
    delete_credential(actor=setting.cast.user("admin"), credential=gone)
    assert list(Credential.objects.all()) == [stays]


def test_the_deletion_is_recorded(setting: Setting) -> None:
    stored = setting.store(CredentialScope.SERVICE_CLIENT)
    AdminAuditEntry.objects.all().delete()
    delete_credential(actor=setting.cast.user("admin"), credential=stored)
    row = AdminAuditEntry.objects.get()
    assert (row.event_type, row.actor_label, row.target_id) == ("credential.deleted", "Admin", str(stored.id))
    assert row.metadata == {
        "vendor": "acme",
        "scope": "service_client",
        "name": "",
        "teamId": None,
        "serviceClientId": str(setting.service_client.id),
    }


def test_deleting_twice_is_not_found_and_recorded_once(setting: Setting) -> None:
    stored = setting.store()
    delete_credential(actor=setting.cast.user("owner"), credential=stored)
    with pytest.raises(NotFound):
        delete_credential(actor=setting.cast.user("owner"), credential=stored)
    assert AdminAuditEntry.objects.filter(event_type="credential.deleted").count() == 1


def test_the_epoch_is_bumped(committed_setting: Setting, bumped: list[str]) -> None:
    stored = committed_setting.store()
    bumped.clear()
    delete_credential(actor=committed_setting.cast.user("owner"), credential=stored)
    assert bumped == [epochs.organization(committed_setting.cast.org.id)]


def test_after_a_deletion_storing_starts_over(setting: Setting) -> None:
    first = setting.store()
    setting.store()
    delete_credential(actor=setting.cast.user("owner"), credential=first)
    again = setting.store()
    assert (again.id != first.id, again.revision) == (True, 1)


def test_shredding_makes_every_copy_unreadable_in_this_organization_only(
    committed_setting: Setting, bumped: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    org, other = committed_setting.cast.org, committed_setting.cast.other_org
    committed_setting.store_everywhere()
    committed_setting.store(organization=other, actor=committed_setting.cast.user("other_owner"))
    backup = credential_refs(org.id)
    remembered = len(sealing.DATA_KEYS)
    bumped.clear()

    assert shred_organization(org.id) == 1

    assert bumped == [epochs.organization(org.id)]
    assert len(sealing.DATA_KEYS) == remembered - 1
    assert "data_keys_destroyed" in caplog.text
    for ref in backup:
        with pytest.raises(UnusableCredential) as caught:
            open_fields(ref, organization_id=org.id, wrapped=wrapped_keys(org.id))
        assert caught.value.reason is UnusableReason.DATA_KEY_MISSING
    (kept,) = credential_refs(other.id)
    assert open_fields(kept, organization_id=other.id, wrapped=wrapped_keys(other.id)) == {"apiKey": SECRET}


def test_a_data_key_made_after_shredding_does_not_revive_the_old_rows(setting: Setting) -> None:
    setting.store()
    (old,) = credential_refs(setting.cast.org.id)
    shred_organization(setting.cast.org.id)
    setting.store(CredentialScope.TEAM)
    assert OrganizationDataKey.objects.get().version == old.data_key_version
    with pytest.raises(UnusableCredential):
        open_fields(old, organization_id=setting.cast.org.id, wrapped=wrapped_keys(setting.cast.org.id))


def test_shredding_nothing_says_so(setting: Setting) -> None:
    assert shred_organization(setting.cast.org.id) == 0

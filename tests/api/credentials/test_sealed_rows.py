"""Ciphertexts moved about in the database do not open, and each move is logged."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.models import Max

from credentials import sealing
from credentials.credential_scope import CredentialScope
from credentials.data_key_cache import DataKeyCache, WrappedKey
from credentials.errors import UnusableCredential, UnusableReason
from credentials.models import Credential, OrganizationDataKey
from credentials.sealing import open_fields, seal_fields, wrapped_keys
from credentials.selectors import credential_refs
from gateway.lib import ids
from orgs.models import Organization
from tests.factories.credentials import SECRET, Setting, make_vendor


def reasons(organization: Organization) -> set[str]:
    """How the organization's credentials open: their secret, or why not."""
    found = set()
    wrapped = wrapped_keys(organization.id)
    for ref in credential_refs(organization.id):
        try:
            fields = open_fields(
                ref, organization_id=organization.id, wrapped=wrapped, cache=DataKeyCache(max_entries=10)
            )
            found.add(fields["apiKey"])
        except UnusableCredential as unusable:
            found.add(unusable.reason.value)
    return found


def copy_sealed(source: Credential, target: Credential) -> None:
    """Put the ciphertext, and the version label that goes with it, into another row."""
    Credential.objects.filter(pk=target.pk).update(sealed=source.sealed, data_key_version=source.data_key_version)


def test_into_another_row_of_the_same_holder(setting: Setting) -> None:
    copy_sealed(setting.store(CredentialScope.TEAM), setting.store(CredentialScope.TEAM, team=setting.other_team))
    assert reasons(setting.cast.org) == {SECRET, "does_not_open"}


def test_into_another_vendor(setting: Setting) -> None:
    copy_sealed(setting.store(), setting.store(vendor=make_vendor("globex")))
    assert reasons(setting.cast.org) == {SECRET, "does_not_open"}


def test_into_another_scope(setting: Setting) -> None:
    copy_sealed(setting.store(), setting.store(CredentialScope.SERVICE_CLIENT))
    assert reasons(setting.cast.org) == {SECRET, "does_not_open"}


def test_into_another_organization(setting: Setting) -> None:
    other = setting.cast.other_org
    theirs = setting.store(organization=other, actor=setting.cast.user("other_owner"), fields={"apiKey": "theirs"})
    copy_sealed(setting.store(), theirs)
    assert reasons(other) == {"does_not_open"}
    assert reasons(setting.cast.org) == {SECRET}


def test_into_another_organization_together_with_the_data_key(setting: Setting) -> None:
    other = setting.cast.other_org
    theirs = setting.store(organization=other, actor=setting.cast.user("other_owner"), fields={"apiKey": "theirs"})
    copy_sealed(setting.store(), theirs)
    source = OrganizationDataKey.objects.get(organization=setting.cast.org)
    OrganizationDataKey.objects.filter(organization=other).update(wrapped_key=source.wrapped_key, key_id=source.key_id)
    assert reasons(other) == {"does_not_open"}


@pytest.mark.parametrize(
    "change", [{"vendor": "globex"}, {"scope": "organization", "team_id": None}, {"id": ids.new_id()}]
)
def test_changing_the_row_around_its_ciphertext(setting: Setting, change: dict[str, object]) -> None:
    setting.store(CredentialScope.TEAM)
    Credential.objects.update(**change)
    assert reasons(setting.cast.org) == {"does_not_open"}


def test_moving_the_row_to_another_organization(setting: Setting) -> None:
    other = setting.cast.other_org
    setting.store()
    setting.store(organization=other, actor=setting.cast.user("other_owner"), vendor=make_vendor("globex"))
    Credential.objects.filter(vendor="acme").update(organization=other)
    assert reasons(other) == {SECRET, "does_not_open"}
    assert reasons(setting.cast.org) == set()


def test_into_another_version(setting: Setting) -> None:
    setting.store()
    key = OrganizationDataKey.objects.get()
    OrganizationDataKey.objects.create(
        organization=setting.cast.org, version=2, key_id=key.key_id, wrapped_key=key.wrapped_key
    )
    Credential.objects.update(data_key_version=2)
    assert reasons(setting.cast.org) == {"does_not_open"}


@pytest.mark.parametrize("sealed", [b"", b"\x01", b"\x02" + bytes(60)])
def test_truncated_or_foreign_bytes(setting: Setting, sealed: bytes) -> None:
    setting.store()
    Credential.objects.update(sealed=sealed)
    assert reasons(setting.cast.org) == {"does_not_open"}


def test_an_old_ciphertext_still_opens_beside_a_new_data_key(setting: Setting) -> None:
    """A newer data key seals what comes, the older one opens what is there."""
    organization = setting.cast.org
    setting.store()
    keyring = sealing.keyring()
    OrganizationDataKey.objects.create(
        organization=organization,
        version=2,
        key_id=keyring.current_id,
        wrapped_key=keyring.wrap(bytes(range(100, 132)), sealing.data_key_aad(organization.id, 2)),
    )
    newer = setting.store(CredentialScope.TEAM, fields={"apiKey": "newer"})
    assert newer.data_key_version == 2
    assert reasons(organization) == {SECRET, "newer"}


def test_the_first_credential_makes_the_data_key_and_later_ones_use_it(setting: Setting) -> None:
    assert wrapped_keys(setting.cast.org.id) == ()
    setting.store_everywhere()
    assert [(key.version, key.key_id) for key in wrapped_keys(setting.cast.org.id)] == [(1, "test-2")]
    assert Credential.objects.aggregate(newest=Max("data_key_version")) == {"newest": 1}


def test_sealing_the_same_fields_twice_tells_nothing(setting: Setting) -> None:
    place = {
        "organization_id": setting.cast.org.id,
        "vendor": "acme",
        "scope": CredentialScope.ORGANIZATION,
        "record_id": ids.new_id(),
        "fields": {"apiKey": SECRET},
    }
    assert seal_fields(**place) != seal_fields(**place)  # type: ignore[arg-type]


def test_opening_asks_no_database(setting: Setting) -> None:
    setting.store()
    (ref,) = credential_refs(setting.cast.org.id)
    wrapped = wrapped_keys(setting.cast.org.id)
    with connection.execute_wrapper(_refuse_queries):
        assert open_fields(ref, organization_id=setting.cast.org.id, wrapped=wrapped) == {"apiKey": SECRET}
        with pytest.raises(UnusableCredential) as caught:
            open_fields(ref, organization_id=setting.cast.org.id, wrapped=[WrappedKey(1, "removed", b"")])
    assert caught.value.reason is UnusableReason.KEY_NOT_CONFIGURED


def _refuse_queries(*_: object) -> None:
    raise AssertionError("a query on the call path")

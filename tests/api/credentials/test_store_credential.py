"""Storing: the rows written at each scope, replacements, and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from audit.models import AdminAuditEntry
from credentials.credential_scope import TYPED_SCOPES, CredentialScope
from credentials.errors import KeyNameTaken, TeamHasKey, UnusableCredential
from credentials.models import Credential, OrganizationDataKey
from credentials.sealing import open_fields, wrapped_keys
from credentials.selectors import credential_refs
from gateway.coordination import epochs
from gateway.lib.errors import Invalid, NotFound
from tests.factories.credentials import SECRET, Setting, make_vendor


def opened(setting: Setting) -> dict[str, dict[str, str]]:
    """Every stored credential of the organization by scope and name, opened."""
    organization_id = setting.cast.org.id
    wrapped = wrapped_keys(organization_id)
    return {
        f"{ref.scope.value} {ref.name}".strip(): open_fields(ref, organization_id=organization_id, wrapped=wrapped)
        for ref in credential_refs(organization_id)
    }


def test_every_scope_stores_and_opens(setting: Setting) -> None:
    for scope in TYPED_SCOPES:
        setting.store(scope, fields={"apiKey": f"{SECRET}-{scope.value}", "platform": "eu", "tenant": ""})
    assert opened(setting) == {
        "organization": {"apiKey": f"{SECRET}-organization", "platform": "eu"},
        "team": {"apiKey": f"{SECRET}-team", "platform": "eu"},
        "named_key Reporting": {"apiKey": f"{SECRET}-named_key", "platform": "eu"},
        "service_client": {"apiKey": f"{SECRET}-service_client", "platform": "eu"},
    }


def test_a_new_credential_is_the_actors_and_of_revision_one(setting: Setting) -> None:
    stored = setting.store()
    assert (stored.revision, stored.created_by, stored.validated_at) == (1, setting.cast.user("owner"), None)
    assert stored.created_at <= stored.updated_at
    assert Credential.objects.get().id == stored.id


@pytest.mark.parametrize("scope", [CredentialScope.ORGANIZATION, CredentialScope.TEAM, CredentialScope.SERVICE_CLIENT])
def test_storing_again_replaces_under_the_same_id(setting: Setting, scope: CredentialScope) -> None:
    first = setting.store(scope, validated=True)
    second = setting.store(scope, actor=setting.cast.user("admin"), fields={"apiKey": f"{SECRET}-2"})
    assert (second.id, second.revision) == (first.id, 2)
    assert bytes(second.sealed) != bytes(first.sealed)
    assert second.created_at == first.created_at
    assert second.created_by == setting.cast.user("owner")
    assert second.validated_at is None  # the vendor's word on the old fields says nothing of the new ones
    assert list(opened(setting).values()) == [{"apiKey": f"{SECRET}-2"}]


def test_validation_is_remembered_with_its_time(setting: Setting) -> None:
    stored = setting.store(validated=True)
    assert stored.validated_at == stored.updated_at


def test_vendors_teams_and_clients_do_not_replace_each_other(setting: Setting) -> None:
    stored = [
        setting.store(),
        setting.store(vendor=make_vendor("globex")),
        setting.store(CredentialScope.TEAM),
        setting.store(CredentialScope.TEAM, team=setting.other_team),
        setting.store(CredentialScope.SERVICE_CLIENT),
        setting.store(CredentialScope.NAMED_KEY, name="One"),
        setting.store(CredentialScope.NAMED_KEY, name="Two"),
        setting.store(CredentialScope.NAMED_KEY, name="One", vendor=make_vendor("globex")),
    ]
    assert len({each.id for each in stored}) == len(stored) == Credential.objects.count()
    assert {each.revision for each in stored} == {1}


def test_each_organization_has_its_own_credential_and_its_own_data_key(setting: Setting) -> None:
    setting.store()
    setting.store(organization=setting.cast.other_org, actor=setting.cast.user("other_owner"))
    assert Credential.objects.count() == OrganizationDataKey.objects.count() == 2
    assert opened(setting) == {"organization": {"apiKey": SECRET}}


def test_a_second_key_of_the_same_name_is_refused(setting: Setting) -> None:
    setting.store(CredentialScope.NAMED_KEY, name="Reporting")
    with pytest.raises(KeyNameTaken) as caught:
        setting.store(CredentialScope.NAMED_KEY, name="  Reporting ", fields={"apiKey": "other"})
    assert caught.value.status == 409
    assert opened(setting) == {"named_key Reporting": {"apiKey": SECRET}}


def test_a_second_key_for_the_same_team_is_refused(setting: Setting) -> None:
    setting.store(CredentialScope.NAMED_KEY, name="One", team=setting.team)
    with pytest.raises(TeamHasKey) as caught:
        setting.store(CredentialScope.NAMED_KEY, name="Two", team=setting.team)
    assert caught.value.status == 409
    setting.store(CredentialScope.NAMED_KEY, name="Two", team=setting.other_team)
    setting.store(CredentialScope.NAMED_KEY, name="Three")
    setting.store(CredentialScope.NAMED_KEY, name="Four")
    assert Credential.objects.count() == 4


@pytest.mark.parametrize("name", ["", "   ", "a\nb", "a\u202eb", "n" * 101])
def test_a_key_needs_a_proper_name(setting: Setting, name: str) -> None:
    with pytest.raises(Invalid) as caught:
        setting.store(CredentialScope.NAMED_KEY, name=name)
    assert list(caught.value.fields) == ["name"]
    assert not Credential.objects.exists()


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "apiKey"),
        ({"apiKey": ""}, "apiKey"),
        ({"apiKey": "a\r\nX-Admin: 1"}, "apiKey"),
        ({"apiKey": {"nested": SECRET}}, "apiKey"),
        ({"apiKey": None}, "apiKey"),
        ({"apiKey": SECRET, "platform": "mars"}, "platform"),
        ({"apiKey": SECRET, "apikey": SECRET}, "apikey"),
        ({"apiKey": SECRET + "x" * 9_000}, "apiKey"),
    ],
)
def test_bad_fields_store_nothing_and_are_not_repeated(setting: Setting, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(Invalid) as caught:
        setting.store(fields=fields)
    assert list(caught.value.fields) == [named]
    assert SECRET not in f"{caught.value!r} {caught.value.fields}"
    assert not Credential.objects.exists()
    assert not AdminAuditEntry.objects.exists()


@pytest.mark.parametrize(
    ("scope", "foreign"),
    [
        (CredentialScope.TEAM, "foreign_team"),
        (CredentialScope.NAMED_KEY, "foreign_team"),
        (CredentialScope.SERVICE_CLIENT, "foreign_client"),
    ],
)
def test_what_belongs_to_another_organization_is_not_found(
    setting: Setting, scope: CredentialScope, foreign: str
) -> None:
    argument = "service_client" if scope is CredentialScope.SERVICE_CLIENT else "team"
    with pytest.raises(NotFound):
        setting.store(scope, **{argument: getattr(setting, foreign)})
    assert not Credential.objects.exists()


def test_a_public_client_has_no_credentials(setting: Setting) -> None:
    setting.foreign_client.organization = None
    setting.foreign_client.save()
    with pytest.raises(NotFound):
        setting.store(CredentialScope.SERVICE_CLIENT, service_client=setting.foreign_client)


@pytest.mark.parametrize("gone", ["team", "service_client", "org"])
def test_what_was_deleted_meanwhile_is_not_found(setting: Setting, gone: str) -> None:
    scope = {"team": CredentialScope.TEAM, "service_client": CredentialScope.SERVICE_CLIENT}.get(
        gone, CredentialScope.ORGANIZATION
    )
    target = setting.cast.org if gone == "org" else getattr(setting, gone)
    type(target).objects.filter(pk=target.pk).delete()
    with pytest.raises(NotFound):
        setting.store(scope)


@pytest.mark.parametrize(
    ("scope", "changes"),
    [
        (CredentialScope.ORGANIZATION, {"name": "x"}),
        (CredentialScope.ORGANIZATION, {"team": "team"}),
        (CredentialScope.ORGANIZATION, {"service_client": "service_client"}),
        (CredentialScope.TEAM, {"team": None}),
        (CredentialScope.TEAM, {"name": "x"}),
        (CredentialScope.NAMED_KEY, {"service_client": "service_client"}),
        (CredentialScope.SERVICE_CLIENT, {"service_client": None}),
        (CredentialScope.SERVICE_CLIENT, {"team": "team"}),
    ],
)
def test_a_scope_takes_only_what_belongs_to_it(
    setting: Setting, scope: CredentialScope, changes: dict[str, Any]
) -> None:
    arguments = {
        key: getattr(setting, value) if value in {"team", "service_client"} else value for key, value in changes.items()
    }
    with pytest.raises(ValueError, match="does not go with"):
        setting.store(scope, **arguments)
    assert not Credential.objects.exists()


def test_the_audit_row_says_who_what_and_where(setting: Setting) -> None:
    stored = setting.store(CredentialScope.NAMED_KEY, team=setting.team, validated=True)
    row = AdminAuditEntry.objects.get()
    assert (row.event_type, row.org_id) == ("credential_key.created", setting.cast.org.id)
    assert (row.actor_id, row.actor_label) == (str(setting.cast.user("owner").id), "Owner")
    assert (row.target_id, row.target_label) == (str(stored.id), "acme (named key Reporting)")
    assert row.metadata == {
        "vendor": "acme",
        "scope": "named_key",
        "name": "Reporting",
        "teamId": str(setting.team.id),
        "serviceClientId": None,
        "validated": True,
        "revision": 1,
    }


def test_a_replacement_is_recorded_as_one(setting: Setting) -> None:
    setting.store()
    setting.store()
    rows = AdminAuditEntry.objects.order_by("timestamp", "id").values_list("event_type", "metadata__revision")
    assert list(rows) == [("credential.created", 1), ("credential.replaced", 2)]


def test_the_epoch_is_bumped_after_the_commit_and_not_without_one(
    committed_setting: Setting, bumped: list[str]
) -> None:
    with transaction.atomic():
        committed_setting.store()
        assert bumped == []
    assert bumped == [epochs.organization(committed_setting.cast.org.id)]
    twice = [committed_setting.store] * 2
    with pytest.raises(KeyNameTaken), transaction.atomic():
        [store(CredentialScope.NAMED_KEY) for store in twice]
    assert len(bumped) == 1
    assert [entry.event_type for entry in AdminAuditEntry.objects.all()] == ["credential.created"]


def test_a_lost_data_key_is_not_papered_over_with_a_new_one(setting: Setting) -> None:
    setting.store()
    OrganizationDataKey.objects.update(wrapped_key=b"damaged")
    with pytest.raises(UnusableCredential):
        setting.store(fields={"apiKey": "new"})
    assert Credential.objects.get().revision == 1
    assert OrganizationDataKey.objects.count() == 1


@pytest.mark.parametrize(
    "row",
    [
        {"scope": "team"},
        {"scope": "organization", "name": "x"},
        {"scope": "named_key"},
        {"scope": "service_client"},
        {"scope": "everybody"},
    ],
)
def test_the_database_refuses_a_row_that_fits_no_scope(setting: Setting, row: dict[str, str]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Credential.objects.create(organization=setting.cast.org, vendor="acme", data_key_version=1, sealed=b"x", **row)


def test_deleting_a_team_takes_its_credentials_and_frees_the_keys_bound_to_it(setting: Setting) -> None:
    own = setting.store(CredentialScope.TEAM)
    key = setting.store(CredentialScope.NAMED_KEY, team=setting.team)
    default = setting.store()
    elsewhere = setting.store(CredentialScope.TEAM, team=setting.other_team)
    setting.team.delete()
    assert set(Credential.objects.values_list("id", "team_id")) == {
        (key.id, None),
        (default.id, None),
        (elsewhere.id, setting.other_team.id),
    }
    assert not Credential.objects.filter(id=own.id).exists()


def test_deleting_the_service_client_or_the_organization_takes_theirs(setting: Setting) -> None:
    setting.store_everywhere()
    setting.service_client.delete()
    assert sorted(Credential.objects.values_list("scope", flat=True)) == ["named_key", "organization", "team"]
    setting.cast.org.delete()
    assert not Credential.objects.exists()
    assert not OrganizationDataKey.objects.exists()

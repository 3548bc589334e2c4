"""Readers: the right organization only, nothing sealed for people, all of it for the call path."""

from __future__ import annotations

import dataclasses

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.sealing import wrapped_keys
from credentials.selectors import (
    CredentialSummary,
    connected_vendors,
    credential,
    credential_refs,
    credential_summaries,
    organization_vendors,
    vendors_at,
    vendors_by_service_client,
)
from gateway.lib.errors import NotFound
from tests.factories.credentials import Setting, make_vendor


def test_vendors_are_listed_by_where_their_credentials_hang(setting: Setting) -> None:
    organization = setting.cast.org
    setting.store(vendor=make_vendor("zeta"))
    setting.store(vendor=make_vendor("acme"))
    setting.store(CredentialScope.TEAM, vendor=make_vendor("teamwork"))
    setting.store(CredentialScope.SERVICE_CLIENT, vendor=make_vendor("robots"))
    setting.store(CredentialScope.NAMED_KEY, vendor=make_vendor("keyed"), team=setting.team)
    assert organization_vendors(organization) == ["acme", "zeta"]
    assert connected_vendors(organization) == ["acme", "keyed", "robots", "teamwork", "zeta"]
    assert vendors_at(organization, CredentialScope.TEAM, team_id=setting.team.id) == ["teamwork"]
    assert vendors_at(organization, CredentialScope.TEAM, team_id=setting.other_team.id) == []
    client = setting.service_client.id
    assert vendors_at(organization, CredentialScope.SERVICE_CLIENT, service_client_id=client) == ["robots"]
    assert vendors_by_service_client(organization) == {setting.service_client.id: ["robots"]}


def test_another_organizations_rows_are_never_listed(setting: Setting) -> None:
    setting.store_everywhere()
    other = setting.cast.other_org
    assert connected_vendors(other) == credential_summaries(other) == []
    assert vendors_at(other, CredentialScope.TEAM, team_id=setting.team.id) == []
    client = setting.service_client.id
    assert vendors_at(other, CredentialScope.SERVICE_CLIENT, service_client_id=client) == []
    assert vendors_by_service_client(other) == {}
    assert credential_refs(other.id) == wrapped_keys(other.id) == ()


def test_summaries_carry_names_and_dates(setting: Setting) -> None:
    default = setting.store(validated=True)
    team = setting.store(CredentialScope.TEAM)
    key = setting.store(CredentialScope.NAMED_KEY, team=setting.other_team)
    client = setting.store(CredentialScope.SERVICE_CLIENT)
    listed = credential_summaries(setting.cast.org)
    assert [each.id for each in listed] == [default.id, team.id, key.id, client.id]
    assert listed[0] == CredentialSummary(
        id=default.id,
        vendor="acme",
        scope=CredentialScope.ORGANIZATION,
        name="",
        team_id=None,
        team_name="",
        service_client_id=None,
        service_client_name="",
        service_client_subject="",
        created_by_name="Owner",
        created_at=default.created_at,
        updated_at=default.updated_at,
        validated_at=default.validated_at,
        stored_at=default.updated_at,
        stored_by_name="Owner",
        last_used_at=None,
        checked_at=default.validated_at,
        check_verdict="validated",
        check_detail="The vendor accepted the credentials.",
        check_tools=2,
    )
    assert (listed[1].team_id, listed[1].team_name) == (setting.team.id, "Night shift")
    assert (listed[2].name, listed[2].team_name, listed[2].validated_at) == ("Reporting", "Day shift", None)
    assert (listed[3].service_client_id, listed[3].service_client_name) == (setting.service_client.id, "Robot")


def test_summaries_of_one_vendor(setting: Setting) -> None:
    setting.store()
    other = setting.store(vendor=make_vendor("globex"))
    assert [each.id for each in credential_summaries(setting.cast.org, vendor="globex")] == [other.id]


def test_a_credential_outlives_the_person_who_stored_it(setting: Setting) -> None:
    setting.store(actor=setting.cast.user("admin"))
    setting.cast.user("admin").delete()
    assert [each.created_by_name for each in credential_summaries(setting.cast.org)] == [""]


def test_a_page_costs_one_query_and_reads_nothing_sealed(setting: Setting) -> None:
    setting.store_everywhere()
    with CaptureQueriesContext(connection) as queries:
        assert len(credential_summaries(setting.cast.org)) == 4
    assert len(queries) == 1
    assert "sealed" not in queries[0]["sql"]
    assert "sealed" not in {field.name for field in dataclasses.fields(CredentialSummary)}


def test_one_credential_by_id_without_its_content(setting: Setting) -> None:
    stored = setting.store()
    found = credential(setting.cast.org, stored.id)
    assert found == stored
    assert found.get_deferred_fields() == {"sealed"}


@pytest.mark.parametrize("whose", ["nobody's", "another organization's"])
def test_unknown_and_foreign_ids_look_the_same(setting: Setting, whose: str) -> None:
    stored = setting.store()
    if whose == "nobody's":
        stored.delete()
        organization, credential_id = setting.cast.org, Credential().id
    else:
        organization, credential_id = setting.cast.other_org, stored.id
    with pytest.raises(NotFound) as caught:
        credential(organization, credential_id)
    assert caught.value.message == NotFound.message


def test_refs_carry_what_a_call_needs(setting: Setting) -> None:
    stored = {row.id: row for row in setting.store_everywhere()}
    refs = credential_refs(setting.cast.org.id)
    assert {ref.id for ref in refs} == set(stored)
    for ref in refs:
        row = stored[ref.id]
        assert (ref.vendor, ref.scope, ref.name, ref.revision) == (row.vendor, CredentialScope(row.scope), row.name, 1)
        assert (ref.team_id, ref.service_client_id) == (row.team_id, row.service_client_id)
        assert (ref.data_key_version, ref.sealed) == (row.data_key_version, bytes(row.sealed))
        assert type(ref.sealed) is bytes
    (wrapped,) = wrapped_keys(setting.cast.org.id)
    assert (wrapped.version, wrapped.key_id, type(wrapped.wrapped)) == (1, "test-2", bytes)


def test_a_snapshot_costs_four_queries(setting: Setting) -> None:
    setting.store_everywhere()
    with CaptureQueriesContext(connection) as queries:
        credential_refs(setting.cast.org.id)
        wrapped_keys(setting.cast.org.id)
    assert len(queries) == 4

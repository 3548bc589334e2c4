"""Seeded rows are those that the services make: bearers are accepted, and credentials open."""

from __future__ import annotations

import pytest

from bench.wide.seeding import Seeding
from bench.wide.sizes import Sizes, has_token
from credentials import sealing
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.resolve import CredentialRef
from oauth_ext.bearer import InvalidBearer
from oauth_ext.jwt import keys
from oauth_ext.models import AccessToken, Client
from orgs.models import Membership, Organization
from tests.factories.bearers import load_identity

SIZES = Sizes(organizations=2, callers=3, vendors=2)


@pytest.fixture
def seeding(db: None) -> Seeding:
    keys.load_key_set()
    made = Seeding(SIZES, "secret of the vendor", "http://testserver/v1/mcp")
    made.add(range(2))
    return made


def test_every_bearer_is_accepted_for_its_own_organization(seeding: Seeding) -> None:
    assert len(seeding.bearers) == 6
    for number, bearer in enumerate(seeding.bearers):
        identity = load_identity(bearer)
        assert str(identity.org_id) == seeding.organizations[number // 3]
        assert bearer.startswith("ey") == has_token(number % 3)


def test_a_bearer_with_another_secret_is_refused(seeding: Seeding) -> None:
    key = seeding.bearers[1]
    with pytest.raises(InvalidBearer):
        load_identity(key[:-1] + ("a" if key[-1] != "a" else "b"))


def test_no_secret_is_stored(seeding: Seeding) -> None:
    assert not AccessToken.objects.exclude(token="").exists()
    assert all(secret.startswith("client_sha256$") for secret in Client.objects.values_list("client_secret", flat=True))


def test_credentials_open_for_their_own_organization_only(seeding: Seeding) -> None:
    first, second = Organization.objects.order_by("name")
    rows = list(Credential.objects.filter(organization=first))
    assert {row.vendor for row in rows} == {"wide-0", "wide-1"}
    for row in rows:
        ref = CredentialRef(
            row.id, row.vendor, CredentialScope.ORGANIZATION, None, None, "", 1, bytes(row.sealed), row.revision
        )
        opened = sealing.open_fields(ref, organization_id=first.id, wrapped=sealing.wrapped_keys(first.id))
        assert opened == {"apiKey": "secret of the vendor"}
        with pytest.raises(sealing.UnusableCredential):
            sealing.open_fields(ref, organization_id=second.id, wrapped=sealing.wrapped_keys(second.id))


def test_each_organization_has_an_owner(seeding: Seeding) -> None:
    assert Membership.objects.filter(role="owner").values("organization").distinct().count() == 2

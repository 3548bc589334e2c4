"""A row refers to nothing of another organization, also where somebody goes past the services."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import IntegrityError, connection

from credentials.models import Credential
from oauth_ext.services.service_clients import create_service_client
from orgs.models import Membership, Organization, ServerAccess, Team
from tests.factories.cast import Cast

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite cannot add a foreign key of two columns to a table"
)


def grant_of_member(cast: Cast, organization: Organization) -> None:
    membership = Membership.objects.get(user=cast.user("member"))
    ServerAccess.objects.create(organization=organization, membership=membership, vendor="acme")


def grant_of_team(cast: Cast, organization: Organization) -> None:
    team = Team.objects.create(organization=cast.org, name="Ops")
    ServerAccess.objects.create(organization=organization, team=team, vendor="acme")


def credential(organization: Organization, scope: str, **of: object) -> None:
    Credential.objects.create(
        organization=organization, vendor="acme", scope=scope, data_key_version=1, sealed=b"x", **of
    )


def team_credential(cast: Cast, organization: Organization) -> None:
    credential(organization, "team", team=Team.objects.create(organization=cast.org, name="Ops"))


def service_client_credential(cast: Cast, organization: Organization) -> None:
    made = create_service_client(actor=cast.user("owner"), organization=cast.org, name="bot")
    credential(organization, "service_client", service_client=made.client)


def responsible_member(cast: Cast, organization: Organization) -> None:
    owner = cast.user("owner" if organization == cast.org else "other_owner")
    made = create_service_client(actor=owner, organization=organization, name="bot")
    made.client.responsible = Membership.objects.get(user=cast.user("member"))
    made.client.save()


ROWS = [responsible_member, grant_of_member, grant_of_team, team_credential, service_client_credential]


@pytest.mark.parametrize("make", ROWS)
def test_a_row_refers_to_its_own_organization_only(cast: Cast, make: Callable[[Cast, Organization], None]) -> None:
    make(cast, cast.org)
    connection.check_constraints()
    Team.objects.all().delete()
    make(cast, cast.other_org)
    with pytest.raises(IntegrityError, match="of_organization"):
        connection.check_constraints()


@pytest.mark.parametrize("make", ROWS)
def test_an_organization_still_ends_with_all_of_it(cast: Cast, make: Callable[[Cast, Organization], None]) -> None:
    make(cast, cast.org)
    cast.org.delete()
    connection.check_constraints()
    assert not ServerAccess.objects.exists()
    assert not Credential.objects.exists()


def test_a_key_outlives_its_team(cast: Cast) -> None:
    team = Team.objects.create(organization=cast.org, name="Ops")
    credential(cast.org, "named_key", team=team, name="shared")
    team.delete()
    connection.check_constraints()
    assert Credential.objects.get().team is None

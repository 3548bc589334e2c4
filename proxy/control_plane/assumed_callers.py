"""Callers as a token would make them, of people and service clients that present none."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gateway.lib import clock
from gateway.lib.errors import NotFound
from oauth_ext import scopes
from oauth_ext.bearer import BearerIdentity
from oauth_ext.bearer_rows import ClientRow, PersonRow, VendorRow
from oauth_ext.models import Client
from oauth_ext.models.client import service_subject
from orgs.models import Membership, Team
from orgs.principal import Principal
from orgs.roles import Role
from orgs.server_access_reasons import AccessReason
from proxy.caller_rows import principal_in, principal_of

_FROM_ROWS = frozenset({"direct", "team"})
_NO_CLIENT = _NO_ONE = uuid.UUID(int=0)


def principal_of_client(client: Client) -> Principal:
    """The rights of a service client now, an expired one included."""
    return principal_of(identity_of_client(client))


def principal_of_client_row(row: ClientRow) -> Principal:
    """As `principal_of_client`, without a query. Raises: NotFound for a public client."""
    return principal_in(_identity_of_client_row(row), time.time())


def principal_of_member(
    membership: Membership, reasons: Iterable[AccessReason], team_ids: Sequence[uuid.UUID]
) -> Principal:
    """The rights of an active member, without a query.

    `reasons`: all, or those for the vendors in question; `team_ids`: oldest team first.
    """
    user = membership.user
    names = (user.display_name, user.first_name, user.last_name, user.email)
    granted = [VendorRow(each.vendor, each.expires_at) for each in reasons if each.source in _FROM_ROWS]
    person = PersonRow(user.id, user.is_active, *names, membership.role, list(team_ids), granted)
    identity = identity_of_person(user.id, membership.organization_id)
    return principal_in(replace(identity, person=person), time.time())


def principal_in_team(team: Team, vendors: Iterable[str]) -> Principal:
    """The rights of a person whose only rights are those of a member of the team. `vendors`: what the team may use."""
    granted = [VendorRow(vendor) for vendor in vendors]
    person = PersonRow(_NO_ONE, True, "", "", "", "", Role.MEMBER.value, [team.pk], granted)
    return principal_in(replace(identity_of_person(_NO_ONE, team.organization_id), person=person), time.time())


def _identity_of_client_row(row: ClientRow) -> BearerIdentity:
    if row.organization_id is None:
        raise NotFound
    subject = service_subject(row.organization_id, row.client_id)
    identity = _assumed(subject, row.organization_id, client_pk=row.pk, client_id=row.client_id, client_name=row.name)
    return replace(identity, client=row)


def identity_of_client(client: Client) -> BearerIdentity:
    """Raises: NotFound for a public client."""
    if client.organization_id is None:
        raise NotFound
    return _assumed(
        client.subject, client.organization_id, client_pk=client.pk, client_id=client.client_id, client_name=client.name
    )


def identity_of_person(user_id: uuid.UUID, org_id: uuid.UUID, *, client_name: str = "") -> BearerIdentity:
    """`client_name`: the part of the pages that the person calls with."""
    return _assumed(str(user_id), org_id, user_id=user_id, client_name=client_name)


def _assumed(
    subject: str,
    org_id: uuid.UUID,
    *,
    user_id: uuid.UUID | None = None,
    client_pk: uuid.UUID = _NO_CLIENT,
    client_id: str = "",
    client_name: str = "",
) -> BearerIdentity:
    return BearerIdentity(
        kind="jwt",
        subject=subject,
        org_id=org_id,
        user_id=user_id,
        client_pk=client_pk,
        client_id=client_id,
        client_name=client_name,
        scopes=frozenset({scopes.ALL}),
        audiences=(),
        expires_at=clock.now(),
    )

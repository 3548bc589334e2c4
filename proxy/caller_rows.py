"""From the rows behind a caller to its rights: of an identity, of an organization."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterable, Sequence
from functools import lru_cache
from sys import intern
from typing import Any

from audit.actor import label_of, person_label
from credentials.access_rows import BY_ORGANIZATION, read_organization, refs_of, wrapped_key
from credentials.resolve import CredentialIndex
from gateway.lib.clock import as_utc
from oauth_ext.bearer import BearerIdentity, InvalidBearer
from oauth_ext.bearer_rows import ClientRow, PersonRow, VendorRow
from oauth_ext.selectors import NOTHING_ALLOWED, ClientLimits, client_limits
from orgs import selectors as orgs
from orgs.allowed_items import AllowedItems, OwnItemLists
from orgs.principal import Agent, Principal, PrincipalKind
from orgs.roles import Role
from proxy.caller import OrganizationAccess, OwnRights

_NOT_A_MEMBER = "The person is no longer a member of the organization."


@lru_cache(maxsize=4_096)
def shared_set(values: frozenset[str]) -> frozenset[str]:
    """The one copy of equal sets: thousands of callers have the same scopes, audiences and vendors."""
    return frozenset(map(intern, values))


@lru_cache(maxsize=256)
def shared_items(items: AllowedItems) -> AllowedItems:
    """The one copy of equal lists."""
    return items


def own_rights(identity: BearerIdentity, loaded_at_s: float, spread: float) -> OwnRights:
    """Raises: InvalidBearer for a person who is no longer a member."""
    now_s = time.time()
    return OwnRights(
        principal=principal_in(identity, now_s),
        key_pk=identity.key_pk,
        audiences=shared_set(frozenset(identity.audiences)),
        expires_at_s=min(identity.expires_at.timestamp(), _next_end_of_agent_s(identity, now_s)),
        loaded_at_s=loaded_at_s,
        spread=spread,
        access_ends=_ends_after(now_s, _access_rows(identity)),
    )


def principal_in(identity: BearerIdentity, now_s: float) -> Principal:
    """The rights that the rows of a bearer give at a Unix time. Raises: InvalidBearer for a person who is no longer a
    member."""
    person, client = identity.person, identity.client
    if person is not None:
        return _person(identity, person, now_s)
    return _service(identity, NOTHING_ALLOWED if client is None else _client_limits(client, now_s))


def principal_of(identity: BearerIdentity) -> Principal:
    """As `principal_in`, for an identity that no bearer gave: its rows are read now."""
    if identity.user_id is None:
        return _service(identity, client_limits(identity.client_pk))
    membership = orgs.membership_row(identity.user_id, identity.org_id)
    if membership is None:
        raise InvalidBearer(_NOT_A_MEMBER)
    teams, user = orgs.team_ids(membership), membership.user
    names = (user.display_name, user.first_name, user.last_name, user.email)
    granted = [VendorRow(vendor) for vendor in orgs.granted_vendors(membership, teams)]
    row = PersonRow(user.id, user.is_active, *names, membership.role, list(teams), granted)
    return _person(identity, row, time.time())


def organization_access(org_id: uuid.UUID) -> OrganizationAccess:
    """The organization's current rows. Raises: InvalidBearer when it is deleted."""
    return organization_in(org_id, BY_ORGANIZATION.ask(str(org_id)))


def organization_in(org_id: uuid.UUID, row: bytes | None) -> OrganizationAccess:
    """`row`: the answer of BY_ORGANIZATION. Raises: InvalidBearer without one."""
    if row is None:
        raise InvalidBearer("The organization no longer exists.")
    organization = read_organization(row)
    return OrganizationAccess(
        org_id=org_id,
        name=organization.name,
        default_access_all=organization.default_server_access.gives_access,
        credentials={vendor: CredentialIndex(refs) for vendor, refs in refs_of(organization).items()},
        wrapped_keys=tuple(map(wrapped_key, organization.wrapped_keys)),
        allowlists={(intern(vendor), intern(role)): _names(tools) for vendor, role, tools in organization.allowlists},
        without_people=_names(organization.without_people),
        item_lists={
            (intern(vendor), intern(role), intern(kind)): AllowedItems.of(kind, map(intern, entries))
            for vendor, role, kind, entries in organization.item_lists
        },
        questions={intern(vendor): shared_set(kinds) for vendor, kinds in organization.questions.items()},
    )


def _names(tools: Iterable[str]) -> frozenset[str]:
    return frozenset(map(intern, tools))


def _access_rows(identity: BearerIdentity) -> Sequence[VendorRow]:
    if identity.person is not None:
        return identity.person.granted_vendors
    return () if identity.client is None else identity.client.listed_vendors


def _next_end_of_agent_s(identity: BearerIdentity, now_s: float) -> float:
    """When the list of the service client that acts for the person is next shorter. The rows are read again then."""
    client = identity.client
    if identity.person is None or client is None or client.organization_id is None:
        return math.inf
    return min((end_s for row in client.listed_vendors if (end_s := _end_s(row)) > now_s), default=math.inf)


def _in_force(rows: Sequence[VendorRow], now_s: float) -> frozenset[str]:
    return frozenset(row.vendor for row in rows if _end_s(row) > now_s)


def _ends_after(now_s: float, rows: Sequence[VendorRow]) -> tuple[tuple[float, str], ...]:
    """Unix time and vendor of each access that ends after `now_s`, the next one first."""
    if all(row.expires_at is None for row in rows):
        return ()
    last: dict[str, float] = {}
    for row in rows:
        # A vendor that the person and a team have is in force until the later end.
        last[row.vendor] = max(last.get(row.vendor, 0.0), _end_s(row))
    return tuple(sorted((end_s, vendor) for vendor, end_s in last.items() if now_s < end_s < math.inf))


def _end_s(row: VendorRow) -> float:
    return math.inf if row.expires_at is None else as_utc(row.expires_at).timestamp()


def _client_limits(client: ClientRow, now_s: float) -> ClientLimits:
    # Fails closed: a list without the flag counts as restricted.
    is_restricted = client.restricted or bool(client.listed_vendors)
    return client.limits(_in_force(client.listed_vendors, now_s) if is_restricted else None)


def _service(identity: BearerIdentity, limits: ClientLimits) -> Principal:
    return Principal(
        kind=PrincipalKind.SERVICE,
        subject=identity.subject,
        label=label_of(identity.subject, identity.client_name),
        org_id=identity.org_id,
        role=Role.MEMBER,
        team_ids=(),
        granted_vendors=None if limits.vendors is None else shared_set(limits.vendors),
        scopes=shared_set(identity.scopes),
        client_pk=identity.client_pk,
        client_id=intern(identity.client_id),
        client_name=intern(identity.client_name),
        own_allowlists=_own_allowlists(limits),
        own_item_lists=_own_item_lists(limits),
        is_read_only=limits.is_read_only,
        lists_compactly=limits.lists_compactly,
    )


def _of_agent(identity: BearerIdentity, limits: ClientLimits) -> dict[str, Any]:
    """The limits that a service client adds to the rights of the person for whom it acts."""
    vendors = None if limits.vendors is None else shared_set(limits.vendors)
    return {
        "agent": Agent(name=intern(identity.client_name), vendors=vendors),
        "own_allowlists": _own_allowlists(limits),
        "own_item_lists": _own_item_lists(limits),
        "is_read_only": limits.is_read_only,
        "lists_compactly": limits.lists_compactly,
    }


def _own_allowlists(limits: ClientLimits) -> dict[str, frozenset[str]] | None:
    # Most have no list: None takes no memory.
    return {intern(vendor): shared_set(tools) for vendor, tools in limits.tools.items()} or None


def _own_item_lists(limits: ClientLimits) -> OwnItemLists | None:
    return {
        (intern(vendor), intern(kind)): shared_items(items) for (vendor, kind), items in limits.items.items()
    } or None


def _person(identity: BearerIdentity, person: PersonRow, now_s: float) -> Principal:
    """Raises: InvalidBearer for a person who is no longer a member."""
    if person.role is None:
        raise InvalidBearer(_NOT_A_MEMBER)
    client = identity.client
    limits = None if client is None or client.organization_id is None else _client_limits(client, now_s)
    return Principal(
        kind=PrincipalKind.PERSON,
        subject=identity.subject,
        label=person_label(person.id, person.display_name, person.first_name, person.last_name, person.email),
        org_id=identity.org_id,
        role=Role(person.role),
        team_ids=tuple(person.team_ids),
        granted_vendors=shared_set(_in_force(person.granted_vendors, now_s)),
        scopes=shared_set(frozenset(identity.scopes)),
        client_pk=identity.client_pk,
        client_id=intern(identity.client_id),
        client_name=intern(identity.client_name),
        user_id=identity.user_id,
        **({} if limits is None else _of_agent(identity, limits)),
    )

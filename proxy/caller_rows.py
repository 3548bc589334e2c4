"""From the rows behind a caller to its rights: of an identity, of an organization."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from sys import intern

from audit.actor import label_of, person_label
from credentials.access_rows import BY_ORGANIZATION, credential_ref, read_organization, wrapped_key
from credentials.resolve import CredentialIndex
from oauth_ext.bearer import BearerIdentity, InvalidBearer
from oauth_ext.bearer_rows import PersonRow
from oauth_ext.selectors import allowed_vendors, restricted_vendors
from orgs import selectors as orgs
from orgs.principal import Principal, PrincipalKind
from orgs.roles import Role
from proxy.caller import OrganizationAccess, OwnRights

_NOT_A_MEMBER = "The person is no longer a member of the organization."


@lru_cache(maxsize=4_096)
def shared_set(values: frozenset[str]) -> frozenset[str]:
    """The one copy of equal sets: thousands of callers have the same scopes, audiences and vendors."""
    return frozenset(map(intern, values))


def own_rights(identity: BearerIdentity, loaded_at_s: float, spread: float) -> OwnRights:
    """Raises: InvalidBearer for a person who is no longer a member."""
    return OwnRights(
        principal=principal_in(identity),
        is_agent_key=identity.kind == "agent_key",
        audiences=shared_set(frozenset(identity.audiences)),
        expires_at_s=identity.expires_at.timestamp(),
        loaded_at_s=loaded_at_s,
        spread=spread,
    )


def principal_in(identity: BearerIdentity) -> Principal:
    """The rights that the rows of a bearer give. Raises: InvalidBearer for a person who is no longer a member."""
    person, client = identity.person, identity.client
    if person is not None:
        return _person(identity, person)
    return _service(identity, None if client is None else allowed_vendors(client.restricted, client.listed_vendors))


def principal_of(identity: BearerIdentity) -> Principal:
    """As `principal_in`, for an identity that no bearer gave: its rows are read now."""
    if identity.user_id is None:
        return _service(identity, restricted_vendors(identity.client_pk))
    membership = orgs.membership_row(identity.user_id, identity.org_id)
    if membership is None:
        raise InvalidBearer(_NOT_A_MEMBER)
    teams, user = orgs.team_ids(membership), membership.user
    names = (user.display_name, user.first_name, user.last_name, user.email)
    granted = orgs.granted_vendors(membership, teams)
    return _person(identity, PersonRow(user.id, user.is_active, *names, membership.role, list(teams), list(granted)))


def organization_access(org_id: uuid.UUID) -> OrganizationAccess:
    """The organization's current rows. Raises: InvalidBearer when it is deleted."""
    return organization_in(org_id, BY_ORGANIZATION.ask(str(org_id)))


def organization_in(org_id: uuid.UUID, row: bytes | None) -> OrganizationAccess:
    """`row`: the answer of BY_ORGANIZATION. Raises: InvalidBearer without one."""
    if row is None:
        raise InvalidBearer("The organization is gone.")
    organization = read_organization(row)
    by_vendor = groupby(map(credential_ref, organization.credentials), key=lambda ref: ref.vendor)
    return OrganizationAccess(
        org_id=org_id,
        name=organization.name,
        default_access_all=organization.default_server_access.gives_access,
        credentials={vendor: CredentialIndex(refs) for vendor, refs in by_vendor},
        wrapped_keys=tuple(map(wrapped_key, organization.wrapped_keys)),
        allowlists={(intern(vendor), intern(role)): _names(tools) for vendor, role, tools in organization.allowlists},
    )


def _names(tools: Iterable[str]) -> frozenset[str]:
    return frozenset(map(intern, tools))


def _service(identity: BearerIdentity, vendors: frozenset[str] | None) -> Principal:
    return Principal(
        kind=PrincipalKind.SERVICE,
        subject=identity.subject,
        label=label_of(identity.subject, identity.client_name),
        org_id=identity.org_id,
        role=Role.MEMBER,
        team_ids=(),
        granted_vendors=None if vendors is None else shared_set(vendors),
        scopes=shared_set(identity.scopes),
        client_pk=identity.client_pk,
        client_id=intern(identity.client_id),
        client_name=intern(identity.client_name),
    )


def _person(identity: BearerIdentity, person: PersonRow) -> Principal:
    """Raises: InvalidBearer for a person who is no longer a member."""
    if person.role is None:
        raise InvalidBearer(_NOT_A_MEMBER)
    return Principal(
        kind=PrincipalKind.PERSON,
        subject=identity.subject,
        label=person_label(person.id, person.display_name, person.first_name, person.last_name, person.email),
        org_id=identity.org_id,
        role=Role(person.role),
        team_ids=tuple(person.team_ids),
        granted_vendors=shared_set(frozenset(person.granted_vendors)),
        scopes=shared_set(frozenset(identity.scopes)),
        client_pk=identity.client_pk,
        client_id=intern(identity.client_id),
        client_name=intern(identity.client_name),
        user_id=identity.user_id,
    )

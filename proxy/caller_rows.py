"""Database reads behind a caller: rights of an identity, state of an organization."""

from __future__ import annotations

import uuid

from audit.actor import label_of
from credentials.sealing import wrapped_keys
from credentials.selectors import refs_by_vendor
from oauth_ext.bearer import BearerIdentity, InvalidBearer
from oauth_ext.selectors import restricted_vendors
from orgs import selectors as orgs
from orgs.principal import Principal, PrincipalKind
from orgs.roles import Role
from proxy.caller import OrganizationAccess


def principal_of(identity: BearerIdentity) -> Principal:
    """The identity's current rights. Raises: InvalidBearer for a person who is no longer a member."""
    if identity.user_id is None:
        return Principal(
            kind=PrincipalKind.SERVICE,
            subject=identity.subject,
            label=label_of(identity.subject, identity.client_name),
            org_id=identity.org_id,
            role=Role.MEMBER,
            team_ids=(),
            granted_vendors=restricted_vendors(identity.client_pk),
            scopes=identity.scopes,
            client_pk=identity.client_pk,
            client_id=identity.client_id,
            client_name=identity.client_name,
        )
    membership = orgs.membership_row(identity.user_id, identity.org_id)
    if membership is None:
        raise InvalidBearer("The person is no longer a member of the organization.")
    teams = orgs.team_ids(membership)
    return Principal(
        kind=PrincipalKind.PERSON,
        subject=identity.subject,
        label=membership.user.label,
        org_id=identity.org_id,
        role=Role(membership.role),
        team_ids=teams,
        granted_vendors=orgs.granted_vendors(membership, teams),
        scopes=identity.scopes,
        client_pk=identity.client_pk,
        client_id=identity.client_id,
        client_name=identity.client_name,
        user_id=identity.user_id,
    )


def organization_access(org_id: uuid.UUID) -> OrganizationAccess:
    """The organization's current rows. Raises: InvalidBearer when it is deleted."""
    organization = orgs.organization(org_id)
    if organization is None:
        raise InvalidBearer("The organization is gone.")
    return OrganizationAccess(
        org_id=org_id,
        name=organization.name,
        default_access_all=organization.gives_access_by_default,
        credentials=refs_by_vendor(org_id),
        wrapped_keys=tuple(wrapped_keys(org_id)),
        allowlists=orgs.allowlists(org_id),
    )

"""Store and end connections to vendors, of an organization and of one person. Spec: contract §8 · D160"""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from credentials.connection_sealing import seal_access, seal_refresh
from credentials.connection_times import times_of
from credentials.credential_scope import CredentialScope
from credentials.errors import PeopleMayNotConnect, VendorServerChanged
from credentials.models import VendorConnection, VendorSignInRules
from credentials.selectors import sign_in_rules
from credentials.services.credentials import delete_credential, store_credential
from credentials.services.vendor_sign_ins import Flow
from credentials.vendor_oauth.answers import Tokens
from gateway.catalog.vendor import Vendor
from gateway.coordination import epochs
from gateway.lib import clock
from gateway.lib.errors import NotFound
from orgs.locking import lock_for_change, lock_organization
from orgs.models import Membership, Organization, User
from orgs.roles import Role


@transaction.atomic
def store_organization_connection(
    *, actor: User, organization: Organization, vendor: Vendor, flow: Flow, tokens: Tokens, account: str = ""
) -> VendorConnection:
    """Replaces the former one. Raises: VendorServerChanged; as `store_credential`."""
    # The credential without fields says that the vendor is connected: pages, access and reviews ask for it.
    credential = store_credential(
        actor=actor,
        organization=organization,
        vendor=vendor,
        scope=CredentialScope.ORGANIZATION,
        fields={},
        is_sign_in=True,
    )
    # Locked: a renewal that ends now would write the same revision with other tokens.
    row = VendorConnection.objects.select_for_update().filter(credential=credential).first() or VendorConnection(
        id=credential.id,
        credential=credential,
        organization=organization,
        vendor=vendor.slug,
        # It goes on from a key that was there before: cached results are keyed by id and revision.
        revision=credential.revision - 1,
    )
    return _store(row, actor, vendor, flow, tokens, account)


@transaction.atomic
def store_own_connection(
    *, membership: Membership, vendor: Vendor, flow: Flow, tokens: Tokens, account: str = ""
) -> VendorConnection:
    """Replaces the person's former one.

    Raises: NotFound for a person who is no longer a member; PeopleMayNotConnect; VendorServerChanged.
    """
    lock_for_change(membership.organization_id, actor=membership.user, role=Role.MEMBER)
    # An admin may have forbidden it since the sign-in began.
    check_people_may_connect(sign_in_rules(membership.organization_id, vendor.slug))
    rows = VendorConnection.objects.select_for_update().filter(membership=membership, vendor=vendor.slug)
    row = rows.first() or VendorConnection(
        membership=membership, organization_id=membership.organization_id, vendor=vendor.slug, revision=0
    )
    return _store(row, membership.user, vendor, flow, tokens, account)


@transaction.atomic
def end_organization_connection(*, actor: User, organization: Organization, vendor: str) -> None:
    """Raises: NotFound without one; Forbidden."""
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    rows = VendorConnection.objects.select_related("credential")
    row = rows.filter(organization=organization, vendor=vendor, membership=None).first()
    if row is None or row.credential is None:
        raise NotFound
    record_connection(EventType.VENDOR_CONNECTION_ENDED, row, actor)
    delete_credential(actor=actor, credential=row.credential)


@transaction.atomic
def end_own_connection(*, membership: Membership, vendor: str) -> None:
    """Raises: NotFound without one."""
    lock_for_change(membership.organization_id, actor=membership.user, role=Role.MEMBER)
    row = VendorConnection.objects.filter(membership=membership, vendor=vendor).first()
    if row is None:
        raise NotFound
    record_connection(EventType.VENDOR_CONNECTION_ENDED, row, membership.user)
    row.delete()


@transaction.atomic
def end_connections_to(vendor: str, organization_id: UUID, *, actor: Actor) -> int:
    """All connections of an organization and its people to the vendor; how many. Keys stay. Raises: NotFound."""
    lock_organization(organization_id)
    rows = VendorConnection.objects.select_related("credential", "membership")
    ended = list(rows.filter(organization_id=organization_id, vendor=vendor))
    for row in ended:
        record_connection(EventType.VENDOR_CONNECTION_ENDED, row, actor)
        if row.credential is not None:
            delete_credential(actor=actor, credential=row.credential)
        else:
            row.delete()
    return len(ended)


def organizations_connected_to(vendor: str) -> list[UUID]:
    """Those that have signed in there, or whose people have."""
    rows = VendorConnection.objects.filter(vendor=vendor).order_by("organization_id")
    return list(rows.values_list("organization_id", flat=True).distinct())


@transaction.atomic
def end_connection_again(connection_id: UUID) -> bool:
    """After a restore: delete a person's own connection that had been ended. Returns whether there was one."""
    row = VendorConnection.objects.filter(pk=connection_id).first()
    if row is None:
        return False
    lock_organization(row.organization_id)
    row.delete()
    epochs.bump_on_commit(epochs.organization(row.organization_id))
    return True


def end_connections(organization_id: UUID) -> None:
    """All of an organization that is being deleted, in the transaction that deletes it."""
    VendorConnection.objects.filter(organization_id=organization_id).delete()


def _store(
    row: VendorConnection, actor: User, vendor: Vendor, flow: Flow, tokens: Tokens, account: str
) -> VendorConnection:
    now = clock.now()
    row.issuer, row.resource = flow.issuer, flow.resource
    row.token_endpoint, row.revocation_endpoint = flow.token_endpoint, flow.revocation_endpoint
    row.client_id, row.auth_method = flow.client_id, flow.auth_method
    row.scopes = flow.scopes if tokens.scopes is None else tokens.scopes
    row.status, row.problem, row.account = VendorConnection.Status.CONNECTED, "", account
    row.wanted_scopes = ""
    row.connected_by, row.connected_at, row.refreshed_at = actor, now, None
    row.lease_id = row.lease_until = None
    seal_refresh(row, tokens.refresh_token)
    set_access(row, tokens)
    row.save()
    _note_issuer(row, vendor)
    record_connection(EventType.VENDOR_CONNECTED, row, actor)
    return row


def check_people_may_connect(rules: VendorSignInRules) -> None:
    """Raises: PeopleMayNotConnect."""
    if not rules.people_may_connect:
        raise PeopleMayNotConnect


def _note_issuer(row: VendorConnection, vendor: Vendor) -> None:
    """The first connection's authorization server counts from now on. Raises: VendorServerChanged."""
    rules = sign_in_rules(row.organization_id, row.vendor)
    if not rules.issuer:
        rules.issuer = row.issuer
        rules.save()
    # Another one may have been the first since the sign-in began. The issuer of the catalog counts in any case.
    elif row.issuer != rules.issuer and (vendor.oauth is None or row.issuer != vendor.oauth.issuer):
        raise VendorServerChanged(rules.issuer, row.issuer)


def set_access(row: VendorConnection, tokens: Tokens) -> None:
    """Seal the access token in the row, and note when it is to be renewed."""
    row.revision += 1
    seal_access(row, tokens.access_token)
    has_refresh = row.sealed_refresh is not None
    row.expires_at, row.refresh_at = times_of(clock.now(), tokens.expires_in_s, has_refresh=has_refresh)


def record_connection(event: EventType, row: VendorConnection, actor: User | Actor) -> None:
    """Write the audit row and bump the epoch. Nothing of a token is in it."""
    record_admin(
        event,
        org_id=row.organization_id,
        actor=actor.as_actor(),
        target=row.as_target(),
        metadata={"vendor": row.vendor, "level": row.scope.value, "scopes": row.scopes, "issuer": row.issuer},
    )
    epochs.bump_on_commit(epochs.organization(row.organization_id))

"""Renewal of a connection's token: claimed in its row, asked outside of any transaction, stored, and seen by all.

One process renews at a time: the row's lease is taken by comparing and setting. The others go on with the former
token while it works, and wait for the new one when it does not.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q

from audit.actor import system
from audit.event_types import EventType
from credentials.connection_sealing import open_refresh, seal_refresh
from credentials.connection_times import RETRY_AFTER
from credentials.errors import ConnectionEnded, UnusableCredential
from credentials.models import VendorConnection
from credentials.resolve import CredentialRef
from credentials.selectors import connection_ref
from credentials.services.vendor_clients import client_of
from credentials.services.vendor_connections import record_connection, set_access
from credentials.services.vendor_revocations import give_back
from credentials.vendor_asking import ASK, TIMEOUT_S
from credentials.vendor_oauth.answers import Refused, Tokens, VendorOAuthFault
from credentials.vendor_oauth.requests import OAuthClient, refresh
from gateway.catalog import registry
from gateway.coordination import epochs
from gateway.lib import clock
from gateway.lib.sentences import sentence

log = structlog.get_logger(__name__)
RENEWAL = system(sentence("vendor sign-in"))
# Longer than two requests: a process that was killed meanwhile holds the others up for so long.
LEASE = timedelta(seconds=2 * TIMEOUT_S + 5)
FRESH = timedelta(seconds=60)
ENDED = frozenset({"invalid_grant"})
LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to renew one connection once."""

    connection_id: UUID
    lease_id: UUID
    revision: int
    vendor: str
    endpoint: str
    revocation_endpoint: str
    resource: str
    client: OAuthClient
    token: str

    def __repr__(self) -> str:
        return f"Claim({self.connection_id})"


@dataclass(frozen=True, slots=True)
class Busy:
    """Another process renews it. `ref`: what the row holds meanwhile."""

    ref: CredentialRef


def claim(connection_id: UUID, revision: int, *, is_rejected: bool = False) -> Claim | CredentialRef | Busy | None:
    """The claim; or the row as it is where there is nothing to renew; None: the connection has ended.

    `is_rejected`: the vendor refused a call with the token of this revision, which is renewed before its time.
    """
    row = _row(connection_id)
    if row is None:
        return None
    now = clock.now()
    is_due = row.refresh_at is not None and row.refresh_at <= now
    # A vendor that refuses a fresh token would refuse the next one, too.
    is_due |= is_rejected and (row.refreshed_at or row.connected_at) <= now - FRESH and not row.problem
    if row.revision != revision or not is_due or row.status != VendorConnection.Status.CONNECTED:
        return connection_ref(row)
    lease_id = uuid.uuid4()
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    rows = VendorConnection.objects.filter(free, pk=connection_id, revision=revision, refresh_at=row.refresh_at)
    if not rows.update(lease_id=lease_id, lease_until=now + LEASE):
        row = _row(connection_id)
        return None if row is None else Busy(connection_ref(row))
    try:
        token, client = open_refresh(row), client_of(row, registry.load().get(row.vendor))
    except (VendorOAuthFault, UnusableCredential) as fault:
        return _postponed(row, lease_id, fault.reason if isinstance(fault, VendorOAuthFault) else fault.message)
    if not token:
        return _ended(row, lease_id, sentence("The vendor issued no token for renewing the connection."))
    endpoints = row.token_endpoint, row.revocation_endpoint
    return Claim(row.pk, lease_id, row.revision, row.vendor, *endpoints, row.resource, client, token)


def renewed_now(ref: CredentialRef, *, sleep: Callable[[float], object] = time.sleep) -> CredentialRef:
    """`ref` with a token to use, for work outside the call path. No transaction may be open.

    Blocks as long as two requests, or as another process renews. Raises: ConnectionEnded.
    """
    if ref.needs_sign_in:
        raise ConnectionEnded
    if ref.refresh_at_s is None or ref.refresh_at_s > clock.now().timestamp():
        return ref
    gives_up_at = clock.now() + LEASE
    found = claim(ref.id, ref.revision)
    while isinstance(found, Busy) and not _works(found.ref) and clock.now() < gives_up_at:
        sleep(LOOK_EVERY_S)
        found = claim(ref.id, ref.revision)
    current = settle(found, ask(found)) if isinstance(found, Claim) else found.ref if isinstance(found, Busy) else found
    if current is None or current.needs_sign_in:
        raise ConnectionEnded
    return current


def note_wanted_scopes(connection_id: UUID, scopes: str) -> None:
    """The vendor refused a call for want of these scopes. The next sign-in asks for them, too."""
    VendorConnection.objects.filter(pk=connection_id).exclude(wanted_scopes=scopes).update(wanted_scopes=scopes)


def _works(ref: CredentialRef) -> bool:
    return ref.expires_at_s is None or ref.expires_at_s > clock.now().timestamp()


def ask(claimed: Claim) -> Tokens | Refused | VendorOAuthFault:
    """Asks the authorization server. Reads no database. A refusal counts when it is repeated."""
    answer = _ask(claimed)
    # Seen from servers in use: one node does not know yet what another one has issued.
    return _ask(claimed) if isinstance(answer, Refused) else answer


def _ask(claimed: Claim) -> Tokens | Refused | VendorOAuthFault:
    try:
        return refresh(claimed.endpoint, claimed.client, token=claimed.token, resource=claimed.resource, ask=ASK)
    except VendorOAuthFault as fault:
        return fault


def settle(claimed: Claim, answer: Tokens | Refused | VendorOAuthFault) -> CredentialRef | None:
    """Stores the answer; the row as it is afterwards. None: the connection has ended meanwhile."""
    with transaction.atomic():
        row = VendorConnection.objects.select_for_update().filter(pk=claimed.connection_id).first()
        if row is None:
            if isinstance(answer, Tokens):  # the revocation at the end named the former ones
                give_back(claimed.vendor, claimed.revocation_endpoint, claimed.client, answer)
            return None
        if row.lease_id != claimed.lease_id or row.revision != claimed.revision:
            # Connected anew meanwhile: this answer belongs to the former connection.
            return connection_ref(row)
        if isinstance(answer, Tokens):
            return _renewed(row, answer)
        if isinstance(answer, Refused) and answer.code in ENDED:
            return _ended(row, claimed.lease_id, sentence("The vendor no longer accepts this connection."))
        if isinstance(answer, Refused):
            reason = sentence("The vendor refused to renew it: %(code)s.", code=answer.code)
        else:
            reason = answer.reason
        return _postponed(row, claimed.lease_id, reason)


def _renewed(row: VendorConnection, tokens: Tokens) -> CredentialRef:
    if tokens.refresh_token:
        seal_refresh(row, tokens.refresh_token)
    set_access(row, tokens)
    if tokens.scopes is not None:
        row.scopes = tokens.scopes
    row.refreshed_at, row.problem = clock.now(), ""
    row.lease_id = row.lease_until = None
    row.save()
    epochs.bump_on_commit(epochs.organization(row.organization_id))
    return connection_ref(row)


@transaction.atomic
def _ended(row: VendorConnection, lease_id: UUID, reason: str) -> CredentialRef:
    """Nothing is deleted: a new sign-in keeps all that refers to the connection."""
    row.status, row.problem = VendorConnection.Status.NEEDS_SIGN_IN, str(reason)[:200]
    row.lease_id = row.lease_until = None
    changed = VendorConnection.objects.filter(pk=row.pk, lease_id=lease_id).update(
        status=row.status, problem=row.problem, lease_id=None, lease_until=None
    )
    if changed:
        record_connection(EventType.VENDOR_SIGN_IN_NEEDED, row, RENEWAL)
        log.warning("vendor connection ended", vendor=row.vendor, connection_id=str(row.pk))
    return connection_ref(row)


def _postponed(row: VendorConnection, lease_id: UUID, reason: str) -> CredentialRef:
    row.problem, row.refresh_at = str(reason)[:200], clock.now() + RETRY_AFTER
    row.lease_id = row.lease_until = None
    VendorConnection.objects.filter(pk=row.pk, lease_id=lease_id).update(
        problem=row.problem, refresh_at=row.refresh_at, lease_id=None, lease_until=None
    )
    # Other processes try again then, too.
    with transaction.atomic():
        epochs.bump_on_commit(epochs.organization(row.organization_id))
    log.warning("vendor token not renewed", vendor=row.vendor, connection_id=str(row.pk))
    return connection_ref(row)


def _row(connection_id: UUID) -> VendorConnection | None:
    return VendorConnection.objects.select_related("membership").filter(pk=connection_id).first()

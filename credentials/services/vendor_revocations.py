"""Revocation at the vendor when a connection ends: noted in the same transaction, sent and repeated by a task.

Spec: RFC 7009 · contract §8
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from datetime import timedelta
from uuid import UUID

import msgspec
import structlog
from django.db import transaction

from credentials.connection_sealing import open_access, open_refresh
from credentials.errors import UnusableCredential
from credentials.models import VendorConnection, VendorRevocation
from credentials.services.vendor_clients import client_of
from credentials.vendor_asking import ASK
from credentials.vendor_oauth.answers import Tokens, VendorOAuthFault
from credentials.vendor_oauth.requests import OAuthClient, revoke
from gateway.catalog import registry
from gateway.keys.current import sealing_keys
from gateway.keys.resealing import SealedRows
from gateway.lib import clock
from gateway.lib.keyring import keyring

log = structlog.get_logger(__name__)
# The pauses grow to some hours; afterwards the tokens end by themselves.
MAX_TRIES, FIRST_PAUSE = 10, timedelta(seconds=30)
LONGEST_S = 10.0  # no row is begun after it: runs begin that often, and share their worker with others
CLAIMED_FOR = timedelta(minutes=10)  # longer than a row can take


class _Content(msgspec.Struct):
    endpoint: str
    client_id: str
    secret: str
    auth_method: str
    # Token and kind; the refresh token first: with it, servers end the whole grant.
    tokens: list[tuple[str, str]]

    def __repr__(self) -> str:
        return "_Content(…)"


def note_revocation(row: VendorConnection) -> None:
    """Needs the transaction that deletes the connection. Does nothing where the vendor takes no revocation."""
    if not row.revocation_endpoint:
        return
    try:
        client = client_of(row, registry.load().get(row.vendor))
        refresh, access = open_refresh(row), open_access(row)
    except (UnusableCredential, VendorOAuthFault):
        log.warning("vendor connection not revoked", vendor=row.vendor, connection_id=str(row.pk))
        return
    _note(row.vendor, row.revocation_endpoint, client, refresh=refresh, access=access)


@transaction.atomic
def give_back(vendor: str, endpoint: str, client: OAuthClient, tokens: Tokens) -> None:
    """Note the revocation of tokens that a vendor issued for a connection that there is no more."""
    if endpoint:
        _note(vendor, endpoint, client, refresh=tokens.refresh_token, access=tokens.access_token)


def _note(vendor: str, endpoint: str, client: OAuthClient, *, refresh: str, access: str) -> None:
    kinds = [(refresh, "refresh_token"), (access, "access_token")]
    content = _Content(
        endpoint, client.client_id, client.secret, client.auth_method, [(token, kind) for token, kind in kinds if token]
    )
    made, keys = VendorRevocation(vendor=vendor), sealing_keys()
    made.key_id, made.sealed = keys.current_id, keys.wrap(msgspec.json.encode(content), _aad(made.pk))
    made.save()


def send_revocations(*, monotonic: Callable[[], float] = time.monotonic) -> int:
    """Send those that are due; returns how many the vendors took. Several may run at once.

    A vendor that does not answer is asked no more in this run: the others are not kept waiting for it.
    """
    stop_at, taken, away = monotonic() + LONGEST_S, 0, set[str]()
    while monotonic() < stop_at and (row := _claimed(away)) is not None:
        is_taken = False
        try:
            is_taken = _send(row)
        except VendorOAuthFault:
            away.add(row.vendor)
        except Exception as fault:  # of one row: it must not keep those behind it
            log.error("revocation not sent", revocation_id=str(row.pk), exc_info=fault)
        taken += is_taken
        _note_end(row, is_taken=is_taken)
    return taken


@transaction.atomic
def _claimed(away: Collection[str]) -> VendorRevocation | None:
    """The one that is due for longest. One whose run died is sent again: sent twice it does no harm."""
    now = clock.now()
    due = VendorRevocation.objects.filter(due_at__lte=now).exclude(vendor__in=away).order_by("due_at")
    row = due.select_for_update(skip_locked=True).first()
    if row is not None:
        VendorRevocation.objects.filter(pk=row.pk).update(due_at=now + CLAIMED_FOR)
    return row


def _send(row: VendorRevocation) -> bool:
    """Whether the vendor took it. Raises: VendorOAuthFault, if it does not answer; CryptoError."""
    plain = keyring().unwrap(row.key_id, bytes(row.sealed), _aad(row.pk))
    content = msgspec.json.decode(plain, type=_Content)
    client = OAuthClient(content.client_id, content.secret, content.auth_method)
    sent = [revoke(content.endpoint, client, token=token, hint=kind, ask=ASK) for token, kind in content.tokens]
    return all(sent)


def _note_end(row: VendorRevocation, *, is_taken: bool) -> None:
    mine = VendorRevocation.objects.filter(pk=row.pk)
    if not is_taken and row.tries + 1 < MAX_TRIES:
        mine.update(tries=row.tries + 1, due_at=clock.now() + FIRST_PAUSE * 2**row.tries)
        return
    if not is_taken:
        log.warning("vendor took no revocation", vendor=row.vendor)
    mine.delete()


def _aad(revocation_id: UUID) -> bytes:
    return f"vendor-revocation|{revocation_id}".encode()


REVOCATIONS = SealedRows(
    what="revocations at vendors",
    rows=VendorRevocation.objects.all,
    key_field="key_id",
    sealed_field="sealed",
    aad=lambda row: _aad(row.pk),
)

"""Clients known by a metadata document (CIMD): fetched at first use, and again when the copy is old."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction

from gateway.coordination import backend
from gateway.coordination.rules import Rule
from gateway.lib import clock, secrets
from gateway.lib.errors import DomainError
from gateway.lib.sentences import sentence
from oauth_ext import cimd_documents, cimd_threads
from oauth_ext.cimd_fetch import FetchFailed, fetch_document
from oauth_ext.cimd_threads import NoThreadFree
from oauth_ext.models import Client
from oauth_ext.registration import BadMetadata, Registration
from oauth_ext.registration_budget import count_for_all
from oauth_ext.scopes_backend import existing
from oauth_ext.services.client_cleanup import is_room_for_another

log = structlog.get_logger(__name__)

# Bounds the fetches of one document, so that an unusable one is not fetched at every request.
FETCHES_OF_ONE = Rule("client-document", limit=3, window_s=60)
# An expired copy is still used for this long while no newer one can be fetched.
STALE_FOR = timedelta(days=7)


class DocumentUnusable(DomainError):
    """The client document cannot be used; the message says why."""

    code, message, status = "invalid_client", sentence("The client document cannot be used."), 400


def cimd_client(*, client_id: str, address: str) -> Client:
    """`address` is the requester's, for the limits. Raises: DocumentUnusable. Spec: D117 · protocol.md B.10"""
    if cimd_documents.host_of(client_id) == urlsplit(settings.BASE_URL).netloc:  # a fetch from ourselves
        raise DocumentUnusable
    known = Client.objects.filter(client_id=client_id).first()
    if known is not None and known.registration_source != Client.RegistrationSource.CIMD:
        raise DocumentUnusable
    if known is not None and known.cimd_expires_at is not None and known.cimd_expires_at > clock.now():
        return known
    try:
        # A failed fetch does not shut the client out: see STALE_FOR.
        return _fetched_client(client_id, address, known)
    except DocumentUnusable as fault:
        log.info("client document not used", host=cimd_documents.host_of(client_id), reason=fault.message)
        if known is None or known.cimd_expires_at is None or known.cimd_expires_at + STALE_FOR <= clock.now():
            raise
        return known


def _fetched_client(client_id: str, address: str, known: Client | None) -> Client:
    _admit(client_id, address)
    try:
        fetched = cimd_threads.run(lambda: fetch_document(client_id), asked_by=address)
        wanted = cimd_documents.read(client_id, fetched.document, existing)
    except NoThreadFree:
        raise DocumentUnusable(sentence("Too many clients are being looked up. Try again in a moment.")) from None
    except TimeoutError:
        raise DocumentUnusable(sentence("The client document did not arrive in time.")) from None
    except (FetchFailed, BadMetadata) as fault:
        raise DocumentUnusable(fault.reason) from None
    lifetime = timedelta(seconds=cimd_documents.lifetime_s(fetched.cache_control))
    return _stored(client_id, wanted, lifetime, known)


def _admit(client_id: str, address: str) -> None:
    # The address counts first: an address over its limit uses up no other window.
    counts = ((settings.CLIENT_REGISTRATIONS, address), (FETCHES_OF_ONE, secrets.sha256(client_id).hex()))
    store = backend.current()
    if not all(store.hit(rule, key).allowed for rule, key in counts) or not count_for_all(address).allowed:
        raise DocumentUnusable(sentence("This client was requested too often. Try again in a minute."))


def _stored(client_id: str, wanted: Registration, lifetime: timedelta, known: Client | None) -> Client:
    if known is None and not is_room_for_another():
        raise DocumentUnusable(sentence("No more clients can be registered right now. Try again later."))
    says = {
        "name": wanted.name,
        "redirect_uris": " ".join(wanted.redirect_uris),
        "cimd_expires_at": clock.now() + lifetime,
    }
    try:
        with transaction.atomic():
            client, _ = Client.objects.update_or_create(
                client_id=client_id,
                registration_source=Client.RegistrationSource.CIMD,
                defaults=says,
                create_defaults={
                    **says,
                    "client_secret": "",
                    "client_type": Client.CLIENT_PUBLIC,
                    "authorization_grant_type": Client.GRANT_AUTHORIZATION_CODE,
                },
            )
    except IntegrityError:  # a client of another kind has this id
        raise DocumentUnusable from None
    return client

"""Ask the identity provider again whether a person may still sign in. docs/decisions/0013

The refresh token asks without a browser: for pages, for /api and when a client refreshes its tokens. One request asks
at a time. Others use the last answer, or wait PROVIDER_WORD_WAIT_S for the new one if the last is too old.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

import jwt
import structlog
from django.conf import settings
from django.db.models import F, Q

from gateway.lib import clock
from gateway.lib.guarded_client import Response
from orgs.models import Identity
from orgs.services.identity_sealing import refresh_token_of, seal_refresh_token
from orgs.signin import provider
from orgs.signin.provider import Provider, ProviderUnavailable

log = structlog.get_logger(__name__)
# Seconds between two reads of the row while another request asks.
_LOOK_EVERY_S = 0.1
# Bounds the threads of this process that wait for another request's answer.
_waiting = threading.BoundedSemaphore(settings.PROVIDER_WORDS_AWAITED_AT_ONCE)


class ConfirmationStatus(Enum):
    CONFIRMED = "confirmed"
    REFUSED = "refused"
    # The provider does not answer, or another request is still asking.
    UNAVAILABLE = "unavailable"
    # No refresh token, or no identity.
    NOT_POSSIBLE = "not possible"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The provider's last answer; `at`: when it last confirmed the person."""

    status: ConfirmationStatus
    at: datetime


class PersonRefused(Exception):
    """The provider no longer confirms the person."""


class ConfirmationUnavailable(Exception):
    """The provider does not answer, and its last confirmation is too old."""


def confirm_person(user_id: uuid.UUID, *, pause: Callable[[float], None] = time.sleep) -> Confirmation:
    """The provider's answer, at most 14 minutes old if the provider is available. No transaction may be open."""
    newest = _newest(user_id)
    if newest is None:
        return Confirmation(ConfirmationStatus.NOT_POSSIBLE, datetime.min.replace(tzinfo=clock.now().tzinfo))
    known = _recent(newest)
    if known is not None:
        return known
    token = refresh_token_of(newest)
    if token is None:
        return Confirmation(ConfirmationStatus.NOT_POSSIBLE, newest.last_confirmed_at)
    if _claim(newest):
        return _ask_provider(newest, token)
    if counts_during_outage(newest.last_confirmed_at) or not _waiting.acquire(blocking=False):
        return Confirmation(ConfirmationStatus.UNAVAILABLE, newest.last_confirmed_at)
    try:
        return _wait_for_other_request(newest, pause)
    finally:
        _waiting.release()


def is_refused(user_id: uuid.UUID) -> bool:
    """Whether the provider refused the person when it was last asked. Asks nobody."""
    newest = _newest(user_id)
    return newest is not None and newest.is_refused


def counts_during_outage(at: datetime) -> bool:
    """Whether a confirmation of that time is enough while the provider does not answer."""
    return clock.now() - at < timedelta(seconds=settings.PROVIDER_SILENCE_S)


def require_person(user_id: uuid.UUID) -> None:
    """Raises: PersonRefused, which is final; ConfirmationUnavailable, which is temporary."""
    confirmation = confirm_person(user_id)
    if confirmation.status is ConfirmationStatus.CONFIRMED:
        return
    if confirmation.status is ConfirmationStatus.UNAVAILABLE:
        if not counts_during_outage(confirmation.at):
            raise ConfirmationUnavailable
        return
    if confirmation.status is ConfirmationStatus.REFUSED or clock.now() - confirmation.at > timedelta(
        days=settings.OIDC_WORD_DAYS
    ):
        raise PersonRefused


def _newest(user_id: uuid.UUID) -> Identity | None:
    rows = Identity.objects.filter(user_id=user_id)
    return rows.order_by(F("confirmed_at").desc(nulls_last=True), "-created_at").first()


def _recent(identity: Identity) -> Confirmation | None:
    """The stored answer if it is final or fresh."""
    at = identity.last_confirmed_at
    if identity.is_refused:
        return Confirmation(ConfirmationStatus.REFUSED, at)
    is_fresh = identity.confirmed_at and clock.now() - at < timedelta(seconds=settings.PROVIDER_WORD_S)
    return Confirmation(ConfirmationStatus.CONFIRMED, at) if is_fresh else None


def _wait_for_other_request(identity: Identity, pause: Callable[[float], None]) -> Confirmation:
    """The answer to another request's question, in any process. UNAVAILABLE if it takes too long."""
    for pauses_left in range(round(settings.PROVIDER_WORD_WAIT_S / _LOOK_EVERY_S), -1, -1):
        row = Identity.objects.filter(pk=identity.pk).first()
        known = None if row is None else _recent(row)
        if known is not None:
            return known
        if row is None or not pauses_left or not _is_being_asked(row):
            break
        pause(_LOOK_EVERY_S)
    return Confirmation(ConfirmationStatus.UNAVAILABLE, identity.last_confirmed_at)


def _is_being_asked(identity: Identity) -> bool:
    # The asking request may ask for the discovery document first.
    longest = timedelta(seconds=2 * settings.OIDC_TIMEOUT)
    return identity.asked_at is not None and clock.now() - identity.asked_at < longest


def _claim(identity: Identity) -> bool:
    """Whether this request may ask now."""
    now = clock.now()
    # A provider that rotates refresh tokens treats a second use as theft, so one request asks at a time.
    # The WHERE clause of the update is the lock.
    due = Q(asked_at=None) | Q(asked_at__lt=now - timedelta(seconds=settings.PROVIDER_ASKED_EVERY_S))
    unchanged = Q(refresh_key_id=identity.refresh_key_id, confirmed_at=identity.confirmed_at)
    return Identity.objects.filter(due, unchanged, pk=identity.pk).update(asked_at=now) == 1


def _ask_provider(identity: Identity, token: str) -> Confirmation:
    at = identity.last_confirmed_at
    try:
        known = provider.current()
        # Another provider is configured now: its people sign in again.
        if known.issuer != identity.issuer:
            return Confirmation(ConfirmationStatus.NOT_POSSIBLE, at)
        answer = _post(known, token)
        # Only invalid_grant is a refusal: other errors may be our own fault or the provider's outage.
        if answer.status == 400 and provider.json_object(answer).get("error") == "invalid_grant":
            _record_refusal(identity)
            return Confirmation(ConfirmationStatus.REFUSED, at)
        if answer.status != 200:
            log.warning("the identity provider gave no answer about a person", status=answer.status)
            return Confirmation(ConfirmationStatus.UNAVAILABLE, at)
        return Confirmation(
            ConfirmationStatus.CONFIRMED, _record_confirmation(identity, known, provider.json_object(answer))
        )
    except (ProviderUnavailable, jwt.PyJWTError, ValueError) as fault:
        log.warning("the identity provider gave no answer about a person", fault=type(fault).__name__)
        return Confirmation(ConfirmationStatus.UNAVAILABLE, at)


def _post(known: Provider, token: str) -> Response:
    form = {
        "grant_type": "refresh_token",
        "refresh_token": token,
        "client_id": settings.OIDC_RP_CLIENT_ID,
        "client_secret": settings.OIDC_RP_CLIENT_SECRET,
    }
    return provider.ask("POST", known.token_endpoint, form=form)


def _record_refusal(identity: Identity) -> None:
    log.info("the identity provider no longer confirms a person", user_id=str(identity.user_id))
    Identity.objects.filter(pk=identity.pk, confirmed_at=identity.confirmed_at).update(
        refused_at=clock.now(), refresh_sealed=b"", refresh_key_id=""
    )


def _record_confirmation(identity: Identity, known: Provider, tokens: dict[str, Any]) -> datetime:
    """Raises: ValueError or jwt.PyJWTError for an answer about another person."""
    if not isinstance(tokens.get("access_token"), str):
        raise ValueError("no access token in the answer")
    if id_token := tokens.get("id_token"):
        _check_subject(known, id_token, identity)
    now = clock.now()
    changes: dict[str, Any] = {"confirmed_at": now, "refused_at": None}
    if renewed := tokens.get("refresh_token"):
        changes["refresh_key_id"], changes["refresh_sealed"] = seal_refresh_token(str(renewed), identity.pk)
    # A sign-in in the meantime stored a newer token, which must stay.
    Identity.objects.filter(pk=identity.pk, confirmed_at=identity.confirmed_at).update(**changes)
    return now


def _check_subject(known: Provider, id_token: str, identity: Identity) -> None:
    """OpenID Connect Core 12.2. Raises: ValueError, jwt.PyJWTError."""
    claims = provider.signed_claims(known, id_token)
    if claims.get("sub") != identity.sub:
        raise ValueError("the ID token speaks of another subject")

"""Authorization requests and consents: a request waits for one decision; a consent is remembered for a while."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.conf import settings
from django.db import transaction

from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.lib import clock, ids, secrets
from gateway.lib.errors import DomainError
from gateway.lib.sentences import sentence
from oauth_ext import authorize_request, lock_order, pkce, redirect_uris, scopes
from oauth_ext.authorize_request import AuthorizeRequest
from oauth_ext.models import AuthorizationRequest, Grant, RememberedConsent
from orgs import membership_check
from orgs.models import Membership, User


class RequestGone(DomainError):
    """Decided, expired, or of another browser or person: one error for all."""

    code, status = "request_gone", 410
    message = sentence("This request has expired or was already answered. Start again from your app.")


@transaction.atomic
def open_request(*, actor: User, session_key: str, wanted: AuthorizeRequest) -> AuthorizationRequest:
    """Raises: RequestGone when the client was deleted meanwhile. Spec: D118"""
    if not lock_order.lock(org_id=None, user_id=actor.pk, client_pk=wanted.client.pk):
        raise RequestGone
    now = clock.now()
    return AuthorizationRequest.objects.create(
        client=wanted.client,
        user=actor,
        session_sha256=secrets.sha256(session_key),
        redirect_uri=wanted.redirect_uri,
        state=wanted.state,
        scope=" ".join(wanted.scopes),
        resource=list(wanted.resources),
        code_challenge=wanted.code_challenge,
        created_at=now,
        expires_at=now + timedelta(seconds=settings.AUTHORIZATION_REQUEST_LIFETIME_S),
    )


def waiting_request(*, actor: User, session_key: str, request_id: str) -> AuthorizationRequest:
    """Raises: RequestGone unless the request waits for this person in this browser session."""
    key = ids.parse_id(request_id)
    if key is None:
        raise RequestGone
    waiting = AuthorizationRequest.objects.select_related("client").filter(user=actor, decided_at=None)
    found = waiting.filter(pk=key, expires_at__gt=clock.now()).first()
    if found is None or not secrets.equal(bytes(found.session_sha256), secrets.sha256(session_key)):
        raise RequestGone
    return found


@transaction.atomic
def allow_request(*, actor: User, request: AuthorizationRequest, org_id: uuid.UUID | str) -> str:
    """Returns the redirect address with a code. Raises: NotFound, RequestGone. Spec: §4.2 · D119, D120, D135"""
    # NotFound for a person who is no member.
    membership = membership_check.require_membership(actor, org_id)
    _consume(request, membership)
    _remember(request, membership)
    record_admin(
        EventType.OAUTH_CONSENT_GRANTED,
        org_id=membership.organization_id,
        actor=actor.as_actor(),
        target=request.client.as_target(),
        metadata={
            "client_id": request.client.client_id,
            "redirect_host": redirect_uris.shown_host(request.redirect_uri),
            "scope": request.scope,
        },
    )
    return _location_with_code(request, membership)


@transaction.atomic
def deny_request(*, actor: User, request: AuthorizationRequest) -> str:
    """Returns the redirect address with the error `access_denied`. Raises: RequestGone."""
    _consume(request, None)
    return authorize_request.error_location(
        request.redirect_uri, request.state, "access_denied", sentence("The person did not allow the request.")
    )


@transaction.atomic
def allow_as_remembered(*, membership: Membership, wanted: AuthorizeRequest) -> str | None:
    """Returns the redirect address with a code, or None when the person must be asked. Spec: D119"""
    # Any program on the computer may be behind a loopback address or an app's scheme: always ask.
    if wanted.always_ask or redirect_uris.stays_on_the_computer(wanted.redirect_uri):
        return None
    remembered = RememberedConsent.objects.filter(
        user=membership.user,
        client=wanted.client,
        organization=membership.organization,
        scope=_scope_key(" ".join(wanted.scopes)),
        redirect_sha256=secrets.sha256(wanted.redirect_uri),
        granted_at__gte=membership.joined_at,  # consents of an earlier membership ended with it
        expires_at__gt=clock.now(),
    )
    is_locked = lock_order.lock(
        org_id=membership.organization_id, user_id=membership.user_id, client_pk=wanted.client.pk
    )
    if not is_locked or not remembered.exists():
        return None
    request = AuthorizationRequest(
        client=wanted.client,
        redirect_uri=wanted.redirect_uri,
        state=wanted.state,
        scope=" ".join(wanted.scopes),
        resource=list(wanted.resources),
        code_challenge=wanted.code_challenge,
    )
    return _location_with_code(request, membership)


def _consume(request: AuthorizationRequest, membership: Membership | None) -> None:
    if membership is not None and not lock_order.lock(
        org_id=membership.organization_id, user_id=membership.user_id, client_pk=request.client_id
    ):
        raise RequestGone
    now = clock.now()
    waiting = AuthorizationRequest.objects.filter(pk=request.pk, decided_at=None, expires_at__gt=now)
    # The WHERE clause is the lock: of two decisions, one wins.
    if waiting.update(decided_at=now) != 1:
        raise RequestGone


def _remember(request: AuthorizationRequest, membership: Membership) -> None:
    if redirect_uris.stays_on_the_computer(request.redirect_uri):
        return
    now = clock.now()
    RememberedConsent.objects.update_or_create(
        user=membership.user,
        client=request.client,
        scope=_scope_key(request.scope),
        redirect_sha256=secrets.sha256(request.redirect_uri),
        defaults={
            "redirect_host": redirect_uris.shown_host(request.redirect_uri),
            "organization": membership.organization,
            "granted_at": now,
            "expires_at": now + timedelta(days=settings.CONSENT_REMEMBERED_DAYS),
        },
    )


def _location_with_code(request: AuthorizationRequest, membership: Membership) -> str:
    code = secrets.random_url_safe()
    now = clock.now()
    Grant.objects.create(
        code=secrets.sha256(code).hex(),
        application=request.client,
        user=membership.user,
        organization=membership.organization,
        redirect_uri=request.redirect_uri,
        scope=request.scope,
        resource=request.resource,
        code_challenge=request.code_challenge,
        code_challenge_method=pkce.METHOD,
        expires=now + timedelta(seconds=settings.AUTHORIZATION_CODE_LIFETIME_S),
    )
    return authorize_request.success_location(request.redirect_uri, request.state, code)


def _scope_key(scope: str) -> str:
    # Sorted, so that the same scopes in another order match.
    named = set(scope.split())
    return scopes.ALL if named & scopes.EVERYTHING else " ".join(sorted(named))

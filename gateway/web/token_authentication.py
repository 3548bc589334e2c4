"""API authentication by a management token. docs/decisions/0099

A request with such a token is judged by the token alone, whatever cookies it carries.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import datetime, timedelta
from urllib.parse import unquote_plus

import structlog
from django.conf import settings
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from audit.admin_log import TOKEN_HOLDER, TOKEN_NAME, TOKEN_PREFIX
from gateway.coordination import backend
from gateway.lib import clock, secrets
from gateway.lib.bounded import put_newest
from gateway.lib.client_address import address_key
from gateway.lib.errors import Forbidden
from gateway.lib.management_token_format import is_within, presented
from gateway.lib.sentences import sentence
from gateway.web import rate
from gateway.web.api_errors import Unavailable
from gateway.web.session_authentication import Unauthenticated
from orgs.models import ManagementToken, User
from orgs.services.management_tokens import note_use, token_in_force
from orgs.signin.confirmation import ConfirmationUnavailable, PersonRefused, require_person

# A token's use is written once in this time by each process.
EVERY = timedelta(minutes=5)
_REMEMBERED = 20_000


class InvalidToken(Unauthenticated):
    message = "The management token is wrong, expired or revoked."
    challenge = 'Bearer realm="gateway", error="invalid_token"'


class PersonNotConfirmed(InvalidToken):
    message = "The identity provider no longer confirms the person of this management token. Sign in again."


class TokenInAddress(InvalidToken):
    message = (
        "A management token does not belong in an address, which logs keep. Send it in the Authorization header, and"
        " revoke this one."
    )


class SessionNeeded(Forbidden):
    """A route that a person uses signed in."""

    code, message = "session_needed", sentence("A management token can’t be used for this. Sign in as a person.")


class ScopeTooLow(Forbidden):
    code, message = "token_scope_too_low", sentence("This needs a management token with the scope admin.")


class ManagementTokenOnly(BaseAuthentication):
    """Gives the token's person and the token. None, for the next class, without a management token."""

    _known: OrderedDict[bytes, datetime] = OrderedDict()
    _lock = threading.Lock()

    def authenticate(self, request: Request) -> tuple[User, ManagementToken] | None:
        """Raises: InvalidToken, PersonNotConfirmed, TokenInAddress, RateLimited, Unavailable."""
        http: HttpRequest = request._request
        if is_within(unquote_plus(http.META.get("QUERY_STRING", ""))):
            raise TokenInAddress
        bearer = presented(http.headers.get("Authorization"))
        if bearer is None:
            return None
        digest = secrets.sha256(bearer)
        address = address_key(rate.address_of(http))
        self._refuse_guessers(digest, address)
        token = token_in_force(bearer)
        if token is None:
            rate.count_under(settings.FAILED_AUTHS, address)
            raise InvalidToken
        person = token.membership.user
        _confirm(person)
        if self._claim(digest):
            note_use(token, every=EVERY)
        structlog.contextvars.bind_contextvars(
            **{TOKEN_HOLDER: str(person.pk), TOKEN_NAME: token.name, TOKEN_PREFIX: token.prefix}
        )
        return person, token

    def authenticate_header(self, request: Request) -> str:
        return InvalidToken.challenge

    def _refuse_guessers(self, digest: bytes, address: str) -> None:
        """Raises: RateLimited for an address that sent too many wrong bearers, unless this token was right before."""
        with self._lock:
            is_known = digest in self._known
        if is_known:
            return
        admission = backend.current().peek(settings.FAILED_AUTHS, address)
        if not admission.allowed:
            raise rate.RateLimited(admission)

    @classmethod
    def _claim(cls, digest: bytes) -> bool:
        """Whether the use is to be written; once in EVERY."""
        now = clock.now()
        with cls._lock:
            noted = cls._known.get(digest)
            if noted is not None and noted <= now < noted + EVERY:
                return False
            put_newest(cls._known, digest, now, _REMEMBERED)
        return True


def forget_token() -> None:
    """After the request: the next one in this thread has another actor."""
    structlog.contextvars.unbind_contextvars(TOKEN_HOLDER, TOKEN_NAME, TOKEN_PREFIX)


def _confirm(person: User) -> None:
    """The identity provider is asked as for a session. Raises: PersonNotConfirmed, Unavailable."""
    try:
        require_person(person.pk)
    except PersonRefused as fault:
        raise PersonNotConfirmed from fault
    except ConfirmationUnavailable as fault:
        raise Unavailable from fault

"""One request to a platform: with its token, compressed, through the guarded client, and its answer read."""

from __future__ import annotations

import gzip
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit
from uuid import UUID

import structlog
from django.conf import settings

from audit.plain_text import plain_text
from audit.shipping.config_sealing import config_of
from audit.shipping.events import Event
from audit.shipping.platforms.exchange import (
    Answer,
    BatchRefused,
    DestinationRefused,
    Outgoing,
    RetryLater,
    Target,
    Token,
    Verdict,
)
from audit.shipping.platforms.platform import Platform
from audit.shipping.platforms.registry import PLATFORMS
from audit.shipping_models import ERROR_CHARACTERS, LogDestination
from gateway.lib import clock
from gateway.lib.bounded import put_newest
from gateway.lib.crypto import CryptoError
from gateway.lib.guarded_client import (
    CertificateRefused,
    OutboundError,
    OutboundTimeout,
    Response,
    ResponseTooLarge,
    send,
)
from gateway.lib.masking import MASK, mask_text
from gateway.lib.outbound import AddressRefused, is_own
from gateway.lib.sentences import sentence

T = TypeVar("T")
log = structlog.get_logger(__name__)
TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 1024 * 1024
MAX_BODY_BYTES = 1024 * 1024  # of a batch, before compression
TOKEN_RESERVE_S = 60.0  # a token is renewed so long before its end
_HIDDEN_FROM_CHARACTERS = 4  # shorter values of a configuration are no secrets
_SECRET_PATH_CHARACTERS = 12  # a path like /v1/logs holds no secret
_PARTS = re.compile(r"[\s:=,;]+")
_PUBLIC_HEADER_VALUES = frozenset({"application/json", "application/x-ndjson", "application/x-www-form-urlencoded"})
_NOT_WRITTEN = BatchRefused(sentence("The record cannot be written in the platform’s format."))
_TOO_LARGE = BatchRefused(f"The record is larger than {MAX_BODY_BYTES // 1024} KiB.")
_NO_CONNECTION = sentence("The connection failed: check the host name and the port, and that the port uses TLS.")
_BROKEN = sentence("The connection broke before the answer was complete.")
_MAX_TOKENS = 1_000
# Tokens of platforms with the end of their use. They are in this process alone.
_tokens: OrderedDict[tuple[UUID, bytes], tuple[str, float]] = OrderedDict()
_tokens_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Sent:
    verdict: Verdict
    sent_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends batches of one destination. Its representation shows no secret."""

    platform: Platform
    target: Target
    token_key: tuple[UUID, bytes] = field(repr=False)
    request: Callable[..., Response] = send
    hidden: set[str] = field(default_factory=set, repr=False)  # values of headers that were sent

    def send(self, events: Sequence[Event]) -> Sent:
        """Blocks for at most two requests of TIMEOUT_S. Never raises for what a platform does."""
        token = self._token()
        if not isinstance(token, str):
            return Sent(token)
        try:
            outgoing = self.platform.request(self.target, events, now=clock.now(), token=token)
        except Exception as fault:
            log.error("log_shipping.record_not_written", platform=self.platform.value, fault=type(fault).__name__)
            return Sent(_NOT_WRITTEN)
        if len(outgoing.body) > MAX_BODY_BYTES:
            return Sent(_TOO_LARGE)
        answer = self._ask(outgoing)
        verdict = self._read(lambda: self.platform.read(answer, events)) if isinstance(answer, Answer) else answer
        if token and isinstance(answer, Answer) and (isinstance(verdict, DestinationRefused) or answer.status == 401):
            with _tokens_lock:
                _tokens.pop(self.token_key, None)  # revoked, perhaps
        return Sent(verdict, len(outgoing.body))

    def words(self, reason: str) -> str:
        """A reason as one line for the tenant, without any value of the configuration."""
        # A platform may repeat its address, and any part of a value: one of several headers, the second half of a pair.
        parts = [part for value in self.target.config.values() for part in (value, *_PARTS.split(value))]
        address = urlsplit(self.target.url)
        parts += [text for text in (address.path, address.query) if len(text) >= _SECRET_PATH_CHARACTERS]
        for value in sorted({*parts, *self.hidden}, key=len, reverse=True):
            if len(value) >= _HIDDEN_FROM_CHARACTERS:
                reason = reason.replace(value, MASK)
        return plain_text(mask_text(reason), max_characters=ERROR_CHARACTERS)

    def _token(self) -> str | RetryLater | DestinationRefused:
        outgoing = self.platform.token_request(self.target)
        if outgoing is None:
            return ""
        kept = _tokens.get(self.token_key)
        if kept is not None and kept[1] > time.monotonic():
            return kept[0]
        answer = self._ask(outgoing)
        token = self._read(lambda: self.platform.read_token(answer)) if isinstance(answer, Answer) else answer
        if not isinstance(token, Token):
            return token
        usable_until = time.monotonic() + max(0.0, token.lifetime_s - TOKEN_RESERVE_S)
        with _tokens_lock:
            put_newest(_tokens, self.token_key, (token.value, usable_until), _MAX_TOKENS)
        return token.value

    def _read(self, read: Callable[[], T]) -> T | RetryLater:
        try:
            return read()
        except Exception as fault:
            log.error("log_shipping.answer_not_read", platform=self.platform.value, fault=type(fault).__name__)
            return RetryLater(sentence("The response couldn’t be read."))

    def _ask(self, outgoing: Outgoing) -> Answer | RetryLater | DestinationRefused:
        headers, body = dict(outgoing.headers), outgoing.body
        self.hidden.update(word for value in headers.values() for word in (value, value.split(" ")[-1]))
        self.hidden.difference_update(_PUBLIC_HEADER_VALUES)
        if outgoing.may_compress:
            headers["Content-Encoding"], body = "gzip", gzip.compress(body, compresslevel=1, mtime=0)
        try:
            response = self.request(
                "POST",
                outgoing.url,
                allow_private=settings.ALLOW_PRIVATE_ENDPOINTS,
                timeout_s=TIMEOUT_S,
                max_bytes=MAX_ANSWER_BYTES,
                headers=headers,
                body=body,
            )
        except AddressRefused:
            return DestinationRefused(sentence("The address points to a network that is not allowed."))
        except CertificateRefused as fault:
            return DestinationRefused(sentence("Nothing was sent: %(fault)s.", fault=fault))
        except OutboundTimeout:
            return RetryLater(sentence("There was no answer within %(timeout_s)s s.", timeout_s=f"{TIMEOUT_S:.0f}"))
        except ResponseTooLarge:
            return RetryLater(sentence("The response was too large."))
        except OutboundError as fault:
            return RetryLater(_NO_CONNECTION if str(fault) == "ConnectError" else _BROKEN)
        return Answer(response.status, response.headers, response.body)


def sender_for(destination: LogDestination, request: Callable[..., Response] = send) -> Sender | DestinationRefused:
    # The service may have moved to this address since it was stored.
    if is_own(destination.endpoint_url, settings.BASE_URL):
        return DestinationRefused(sentence("This is the gateway’s own address. Enter a different one."))
    try:
        config = config_of(destination)
    except CryptoError:
        return DestinationRefused(sentence("The stored configuration can’t be decrypted. Enter it again."))
    target = Target(destination.endpoint_url, config)
    key = (destination.pk, bytes(destination.config_sealed)[-32:])
    return Sender(PLATFORMS[destination.platform], target, key, request)

"""Values that a caller keeps for the gateway and brings back: sealed for its organization, and good until a time."""

from __future__ import annotations

import base64
import hmac
from typing import Generic, Protocol, TypeVar
from uuid import UUID

import msgspec
from django.conf import settings

from gateway.lib import clock
from gateway.lib.crypto import CryptoError, open_sealed, seal


class NotOpened(Exception):
    """The text is cut, too long, of another organization or purpose, or past its time."""


class Expiring(Protocol):
    """A value with the end of its time."""

    @property
    def expires_at_s(self) -> float: ...


ValueT = TypeVar("ValueT", bound=Expiring)


class CallerSeal(Generic[ValueT]):
    """A seal for one purpose, which no other seal has. `kind`: a struct of msgspec."""

    def __init__(self, purpose: bytes, kind: type[ValueT], *, max_characters: int) -> None:
        self._purpose, self._max_characters = purpose, max_characters
        self._decoder = msgspec.msgpack.Decoder(kind)

    def seal(self, org_id: UUID, value: ValueT) -> str:
        """Base64 for URLs, with padding."""
        raw = seal(self._key(org_id), msgspec.msgpack.encode(value), self._purpose + org_id.bytes)
        return base64.urlsafe_b64encode(raw).decode("ascii")

    def open(self, org_id: UUID, text: str) -> ValueT:
        """`text`: with its padding or without. Raises: NotOpened."""
        if len(text) > self._max_characters:
            raise NotOpened
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            raw = base64.b64decode(padded, altchars=b"-_", validate=True)
            value = self._decoder.decode(open_sealed(self._key(org_id), raw, self._purpose + org_id.bytes))
        except (ValueError, CryptoError, msgspec.MsgspecError) as fault:
            raise NotOpened from fault
        if clock.now().timestamp() >= value.expires_at_s:
            raise NotOpened
        return value

    def _key(self, org_id: UUID) -> bytes:
        return hmac.digest(settings.SECRET_KEY.encode(), self._purpose + org_id.bytes, "sha256")

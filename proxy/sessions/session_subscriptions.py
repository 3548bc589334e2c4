"""The resources that sessions of callers are subscribed to, for all processes: any may hold the session's stream.

Each is a field of a table in the exchange, sealed. docs/decisions/0113
"""

from __future__ import annotations

import hmac

import msgspec
import structlog

from gateway.coordination.exchange import Exchange
from gateway.lib.crypto import CryptoError, open_sealed, seal
from proxy.sessions.client_session import ClientSession

log = structlog.get_logger(__name__)
KEPT_S = 3_600  # without a stream of the session


class Subscription(msgspec.Struct, frozen=True, array_like=True):
    """`address`: as the caller has it. `vendor`: the slug. `own`: the vendor's address."""

    address: str
    vendor: str
    own: str


_decoder = msgspec.msgpack.Decoder(Subscription)


class SessionSubscriptions:
    """One event loop. Methods raise CoordinationUnavailable."""

    def __init__(self, exchange: Exchange, secret: bytes, *, most: int) -> None:
        """`secret` is the deployment's. `most`: of one session."""
        self._exchange, self._most = exchange, most
        self._names = hmac.digest(secret, b"session-subscriptions|names", "sha256")
        self._key = hmac.digest(secret, b"session-subscriptions|values", "sha256")

    async def add(self, session: ClientSession, found: Subscription) -> bool:
        """False if the session has too many."""
        name, field = self._name(session), self._field(session, found.address)
        value = seal(self._key, msgspec.msgpack.encode(found), name.encode() + field)
        return await self._exchange.set_field(name, field, value, ttl_s=KEPT_S, most=self._most)

    async def remove(self, session: ClientSession, address: str) -> None:
        await self._exchange.remove_field(self._name(session), self._field(session, address))

    async def of(self, session: ClientSession) -> list[Subscription]:
        name = self._name(session)
        found = await self._exchange.fields(name, ttl_s=KEPT_S)
        opened = (self._opened(name, field, value) for field, value in found.items())
        return [each for each in opened if each is not None]

    def _opened(self, name: str, field: bytes, value: bytes) -> Subscription | None:
        try:
            return _decoder.decode(open_sealed(self._key, value, name.encode() + field))
        except (CryptoError, msgspec.MsgspecError) as fault:
            log.warning("subscription of a session not read", fault=type(fault).__name__)
            return None

    def _name(self, session: ClientSession) -> str:
        return f"subscriptions:{hmac.digest(self._names, session.id, 'sha256').hex()}"

    def _field(self, session: ClientSession, address: str) -> bytes:
        return hmac.digest(self._names, session.id + address.encode("utf-8", "surrogatepass"), "sha256")[:16]

"""The resources that sessions of callers are subscribed to, for all processes: any may hold the session's stream.

Each is a field of a table in the exchange, sealed. A subject and an organization have so many in all of their sessions,
and a table ends with its session: what the exchange keeps is bounded. docs/decisions/0113
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import Enum

import msgspec
import structlog

from gateway.coordination.exchange import Exchange, Table
from gateway.lib import clock
from gateway.lib.crypto import CryptoError, open_sealed, seal
from orgs.principal import Principal
from proxy.sessions.client_session import ClientSession

log = structlog.get_logger(__name__)
KEPT_S = 3_600  # without a stream of the session


class Subscription(msgspec.Struct, frozen=True, array_like=True):
    """`address`: as the caller has it. `vendor`: the slug. `own`: the vendor's address."""

    address: str
    vendor: str
    own: str


class Holder(Enum):
    """A bound on subscriptions is of one of these."""

    SESSION = 0
    SUBJECT = 1
    ORGANIZATION = 2


@dataclass(frozen=True, slots=True)
class Kept:
    """The subscriptions of a session. `mark`: other than before if the exchange has lost them meanwhile; b"": there are
    none."""

    mark: bytes
    found: list[Subscription]


_decoder = msgspec.msgpack.Decoder(Subscription)


class SessionSubscriptions:
    """One event loop. Methods raise CoordinationUnavailable."""

    def __init__(
        self, exchange: Exchange, secret: bytes, *, of_session: int, of_subject: int, of_organization: int
    ) -> None:
        """`secret` is the deployment's."""
        self._exchange = exchange
        self._of_session, self._of_subject, self._of_organization = of_session, of_subject, of_organization
        self._names = hmac.digest(secret, b"session-subscriptions|names", "sha256")
        self._key = hmac.digest(secret, b"session-subscriptions|values", "sha256")

    async def add(self, principal: Principal, session: ClientSession, found: Subscription) -> Holder | None:
        """None; or the holder that has too many, and then nothing is kept."""
        table, field = self._table(principal, session), self._field(session, found.address)
        value = seal(self._key, msgspec.msgpack.encode(found), table.name.encode() + field)
        full = await self._exchange.set_field(table, field, value, ttl_s=_ttl_s(session))
        return Holder([table.name, *(name for name, _ in table.shares)].index(full)) if full else None

    async def remove(self, principal: Principal, session: ClientSession, address: str) -> None:
        await self._exchange.remove_field(self._table(principal, session), self._field(session, address))

    async def of(self, principal: Principal, session: ClientSession) -> Kept:
        table = self._table(principal, session)
        fields = await self._exchange.fields(table, ttl_s=_ttl_s(session))
        opened = (self._opened(table.name, field, value) for field, value in fields.values.items())
        return Kept(fields.mark, [each for each in opened if each is not None])

    async def end(self, principal: Principal, session: ClientSession) -> None:
        """Of the session: it is subscribed to nothing any more."""
        await self._exchange.drop(self._table(principal, session))

    def _opened(self, name: str, field: bytes, value: bytes) -> Subscription | None:
        try:
            return _decoder.decode(open_sealed(self._key, value, name.encode() + field))
        except (CryptoError, msgspec.MsgspecError) as fault:
            log.warning("subscription of a session not read", fault=type(fault).__name__)
            return None

    def _table(self, principal: Principal, session: ClientSession) -> Table:
        of_organization = f"subscriptions:{{{self._digest(principal.org_id.bytes)}}}:"
        of_subject = f"{of_organization}{self._digest(principal.org_id.bytes + principal.subject.encode())}:"
        shares = ((of_subject, self._of_subject), (of_organization, self._of_organization))
        return Table(f"{of_subject}{self._digest(session.id)}", self._of_session, shares)

    def _digest(self, name: bytes) -> str:
        return hmac.digest(self._names, name, "sha256")[:16].hex()

    def _field(self, session: ClientSession, address: str) -> bytes:
        return hmac.digest(self._names, session.id + address.encode("utf-8", "surrogatepass"), "sha256")[:16]


def _ttl_s(session: ClientSession) -> int:
    """A table ends with its session."""
    return max(1, min(KEPT_S, int(session.expires_at_s - clock.now().timestamp())))

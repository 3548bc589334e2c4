"""The parts of callers' sessions that change, for all processes. docs/decisions/0110"""

from __future__ import annotations

import hmac
from collections import OrderedDict

import msgspec
import structlog

from gateway.coordination.exchange import Exchange
from gateway.coordination.rules import Rule
from gateway.coordination.store import CoordinationStore, CoordinationUnavailable
from gateway.lib.bounded import put_newest
from orgs.principal import Principal
from proxy.sessions.client_session import LIFETIME_S, ClientSession, ClientSessionState

log = structlog.get_logger(__name__)
ENDED_S = 60
MAX_KNOWN = 10_000  # states of one process; most sessions have none
_decoder = msgspec.msgpack.Decoder(ClientSessionState)


class TooManyChanges(Exception):
    """Too many sessions of the subject or the organization have changed. `retry_after_s`: seconds."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s


class SessionStates:
    """One event loop."""

    def __init__(
        self, store: CoordinationStore, exchange: Exchange, secret: bytes, *, of_subject: Rule, of_organization: Rule
    ) -> None:
        """`secret` is the deployment's. The rules bound the sessions that change: a changed one is kept for a week."""
        self._store, self._exchange = store, exchange
        self._of_subject, self._of_organization = of_subject, of_organization
        self._names = hmac.digest(secret, b"session-states|names", "sha256")
        self._known: OrderedDict[bytes, tuple[str, ClientSessionState]] = OrderedDict()  # by session, with its epoch

    async def at(self, session: ClientSession, epoch: str) -> ClientSessionState:
        """The state at this value of the session's epoch; the first one while the exchange is away.

        A session that changed and has no state has ended.
        """
        if not epoch:  # never changed
            return ClientSessionState()
        known = self._known.get(session.id)
        if known is not None and known[0] == epoch:
            return known[1]
        try:
            raw = await self._exchange.get(self._name(session))
            found = ClientSessionState(is_ended=True) if raw is None else _decoder.decode(raw)
        except (CoordinationUnavailable, msgspec.MsgspecError) as fault:
            log.info("state of a session not read", fault=type(fault).__name__)
            return known[1] if known is not None else ClientSessionState()
        put_newest(self._known, session.id, (epoch, found), MAX_KNOWN)
        return found

    async def change(
        self, principal: Principal, session: ClientSession, state: ClientSessionState, *, is_first: bool
    ) -> None:
        """All processes know it at the session's next request. `is_first`: the session has not changed before.

        Raises: TooManyChanges; CoordinationUnavailable.
        """
        if is_first:
            await self._count(principal)
        # Of an ended session nothing needs to be kept but the epoch.
        ttl_s = ENDED_S if state.is_ended else LIFETIME_S
        await self._exchange.put(self._name(session), msgspec.msgpack.encode(state), ttl_s)
        if await self._store.begin_epochs([session.epoch]) is None:
            raise CoordinationUnavailable("away")
        await self._store.renew_epoch(session.epoch)

    async def _count(self, principal: Principal) -> None:
        """Raises: TooManyChanges. A session that may not change lives on until its end."""
        counts = ((self._of_subject, principal.subject), (self._of_organization, str(principal.org_id)))
        for rule, key in counts:
            admission = await self._store.admit(rule, key, ())
            if not admission.allowed:
                raise TooManyChanges(admission.retry_after_s)

    def _name(self, session: ClientSession) -> str:
        return f"session:{hmac.digest(self._names, session.id, 'sha256').hex()}"

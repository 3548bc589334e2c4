"""Opens a session with a vendor in the revision of MCP that the vendor speaks.

    verdict known --modern--> ModernSession
       |  \\--earlier--> initialize --refused--> ask again, once
       +--none--> server/discover --modern--> ModernSession
                        +--anything else--> initialize
A vendor is asked before the first session, when a verdict proves wrong, and at the next session after a day: it may
declare other capabilities by then. docs/decisions/0106
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from proxy.outcomes import VendorFault
from proxy.protocol.modern import vendor_requests
from proxy.protocol.modern.eras import Era
from proxy.vendors import errors
from proxy.vendors.destination import Destination
from proxy.vendors.era_verdicts import EraVerdicts, Verdict
from proxy.vendors.errors import Evidence, OtherEra, VendorProblem
from proxy.vendors.handshake import declared_capabilities
from proxy.vendors.handshake_session import HandshakeSession
from proxy.vendors.modern_session import ModernSession
from proxy.vendors.session import SessionListener, VendorSession
from proxy.vendors.transport import VendorTransport
from proxy.vendors.vendor_access import VendorAccess

log = structlog.get_logger(__name__)
# For the answer to `server/discover`. A vendor that keeps silent on unknown methods has the rest for the handshake.
ASK_WITHIN_S = 3.0
S = TypeVar("S", bound=VendorSession)


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens the sessions of one destination."""

    transport: VendorTransport
    destination: Destination
    listener: SessionListener | None = None
    on_connected: Callable[[], None] | None = None

    async def open(self, verdicts: EraVerdicts | None, *, deadline: float) -> VendorSession:
        """Without `verdicts` the vendor is not asked, and spoken to in the earlier revisions. Raises: VendorProblem."""
        if verdicts is None or not self.destination.newest_protocol:
            return await self._initialized(deadline, None)
        known = await verdicts.known(self.destination.key)
        if known is None:
            return await self._opened_anew(verdicts, deadline)
        if known.is_modern:
            return await self._modern(verdicts, known, deadline)
        try:
            return await self._initialized(deadline, known)
        except VendorProblem as problem:
            if problem.fault is not VendorFault.BAD_RESPONSE or (
                known.is_provisional and not verdicts.may_doubt(known)
            ):
                raise
            # A vendor of the modern revision alone refuses to begin.
            verdicts.give_up(self.destination.key, known)
            _, modern = await self._ask(verdicts, deadline)
            if modern is None:
                # It was asked just now, and is not asked at each attempt while it is in trouble.
                await verdicts.keep(self.destination.key, known.version, is_provisional=True)
                raise
            return modern

    async def _opened_anew(self, verdicts: EraVerdicts, deadline: float) -> VendorSession:
        said, modern = await self._ask(verdicts, deadline)
        if modern is not None:
            return modern
        session = await self._initialized(deadline, None)  # an answer that is no MCP at all leaves no verdict
        session.verdict = await verdicts.keep(
            self.destination.key, session.protocol_version, is_provisional=said is Era.UNKNOWN
        )
        return session

    async def _ask(self, verdicts: EraVerdicts, deadline: float) -> tuple[Era, ModernSession | None]:
        """The vendor's word, and a session if it speaks the modern revision. Raises: VendorProblem."""
        session = self._new(ModernSession, None)
        within = min(deadline, asyncio.get_running_loop().time() + ASK_WITHIN_S)
        try:
            said, raw = await session.discover(deadline=within)
        except VendorProblem as problem:
            is_unusable = problem.fault is VendorFault.BAD_RESPONSE
            if problem.evidence is not Evidence.NO_RESPONSE and not problem.is_own_timeout and not is_unusable:
                raise
            said, raw = Era.UNKNOWN, b""
        log.info("vendor asked for its revision", vendor=self.destination.key.vendor, said=said.value)
        if said is not Era.MODERN:
            return said, None
        session.capabilities = declared_capabilities(raw)
        session.verdict = await verdicts.keep(
            self.destination.key, vendor_requests.VERSION, capabilities=session.capabilities
        )
        return said, session

    async def _modern(self, verdicts: EraVerdicts, known: Verdict, deadline: float) -> ModernSession:
        session = self._new(ModernSession, known)
        session.capabilities = frozenset(known.capabilities)
        if not verdicts.is_old(known):
            return session
        try:
            _, again = await self._ask(verdicts, deadline)
        except VendorProblem:  # calls go on as before, and meet the problem if it stays
            return session
        return again or session

    async def _initialized(self, deadline: float, verdict: Verdict | None) -> HandshakeSession:
        session = self._new(HandshakeSession, verdict)
        try:
            await session.initialize(deadline=deadline)
        except OtherEra as refused:
            raise errors.no_common_version() from refused
        return session

    def _new(self, kind: type[S], verdict: Verdict | None) -> S:
        return kind(
            self.transport,
            VendorAccess.of(self.destination),
            self.destination,
            listener=self.listener,
            on_connected=self.on_connected,
            verdict=verdict,
        )


async def open_for_check(transport: VendorTransport, access: VendorAccess, *, deadline: float) -> VendorSession:
    """A session outside of the pool. It begins with a handshake, and a vendor that refuses is asked for its revision.

    Raises: VendorProblem; OtherEra.
    """
    session = HandshakeSession(transport, access)
    try:
        await session.initialize(deadline=deadline)
    except (VendorProblem, OtherEra) as refused:
        if isinstance(refused, VendorProblem) and refused.fault is not VendorFault.BAD_RESPONSE:
            raise
        modern = ModernSession(transport, access)
        if not await _is_modern(modern, deadline):
            raise
        return modern
    return session


async def _is_modern(session: ModernSession, deadline: float) -> bool:
    try:
        return (await session.discover(deadline=deadline))[0] is Era.MODERN
    except VendorProblem as problem:
        log.debug("vendor does not say its revision", fault=problem.fault.value)
        return False

r"""Listens to one vendor with one credential, for all subscribers of this process that have this credential.

    unheard --vendor asked--> kept --stream ends--> unheard, asked again after a pause
       |  \--refused by the vendor--> refused          +--address that nobody wants--> given up
       +--no answer in time--> unheard, and asked again
A vendor of the earlier revisions is asked address by address, and speaks on the GET stream of the session that calls
with this credential share: a resource may be of this session alone. One of 2026-07-28 is asked in
`subscriptions/listen`: a stream with other addresses begins before the former one ends.
An address that was kept before its stream ended is told as changed once it is kept again. docs/decisions/0113
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from typing import Any

import structlog

from proxy.protocol import replies
from proxy.protocol.item_addresses import MAX_CHARACTERS
from proxy.protocol.item_kinds import SUBSCRIBE, UNSUBSCRIBE
from proxy.vendors import errors
from proxy.vendors.circuits import Trials
from proxy.vendors.destination import Destination
from proxy.vendors.errors import Evidence, OtherEra, StaleSession, VendorProblem
from proxy.vendors.pool import SessionPool
from proxy.vendors.rpc_request import RpcRequest
from proxy.vendors.session import VendorSession

log = structlog.get_logger(__name__)
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
STEADY_S = 60.0  # a stream that lasted so long was none that fails
LINGER_S = 2.0  # without an address, before the vendor's stream is left
SETTLE_S = 0.05  # for addresses that come together
ASKED_AT_ONCE = 8
ASK_WITHIN_S = 6.0  # less than a caller waits for the answer to its own address
ASK_AGAIN_S = 15.0
END_LOOK_S = 2.0  # between looks at whether the session is still the one that calls use
MAX_PARENTS = 64  # of an announced address
REFUSED = "The vendor does not announce changes of this resource."


class Interest:
    """One subscriber's interest in one address. `wake` may not block.

    `is_promised`: the subscriber counts on it already, so a change before the vendor keeps it is one too. `has_news`:
    the resource may have changed since the subscriber last took note. `is_refused`: the vendor announces its changes no
    more. `is_rejected`: it refuses the credential. `is_displaced`: the stream's place was needed for others.
    """

    __slots__ = ("has_news", "is_displaced", "is_promised", "is_refused", "is_rejected", "own", "wake")

    def __init__(self, own: str, wake: Callable[[], None], *, is_promised: bool = False) -> None:
        self.own, self.wake, self.is_promised = own, wake, is_promised
        self.has_news = self.is_refused = self.is_rejected = self.is_displaced = False

    def tell(self) -> None:
        self.has_news = True
        self.wake()


class RefusedByVendor(Exception):
    """The vendor's error in answer to a subscription; None: it left the address out."""

    def __init__(self, error: replies.RpcError | None) -> None:
        super().__init__()
        self.error = error


class VendorListening:
    """One event loop. `on_end` is called when there is nothing to listen to any more."""

    def __init__(self, pool: SessionPool, destination: Destination, on_end: Callable[[VendorListening], None]) -> None:
        self._pool, self.destination, self._on_end = pool, destination, on_end
        self._interests: dict[str, set[Interest]] = {}
        self._kept: set[str] = set()  # by the vendor, in the stream that is open
        self._lost: set[str] = set()  # kept in the stream before, and not yet in this one
        self._asking: dict[str, asyncio.Future[None]] = {}
        self._changed, self._is_open = asyncio.Event(), asyncio.Event()
        self._honoured: Set[str] = frozenset()
        self._trials: Trials = ()  # of the attempt, until its stream is open
        self._task: asyncio.Task[None] | None = None

    def add(self, interest: Interest, *, has_gap: bool = False) -> None:
        """`has_gap`: as in `ListeningHub.take`."""
        others = self._interests.setdefault(interest.own, set())
        if interest.own in self._kept and (has_gap or any(each.has_news for each in others)):
            interest.tell()
        others.add(interest)
        self._changed.set()
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    def remove(self, interest: Interest) -> None:
        interests = self._interests.get(interest.own, set())
        interests.discard(interest)
        if not interests:
            self._interests.pop(interest.own, None)
            self._lost.discard(interest.own)
            self._end_asking(interest.own, errors.unavailable())  # no caller waits: the entry alone is left
            self._changed.set()

    async def confirmed(self, own: str, *, deadline: float) -> None:
        """Wait until the vendor keeps the address. Raises: VendorProblem; RefusedByVendor."""
        if own in self._kept:
            return
        asking = self._asking.setdefault(own, asyncio.get_running_loop().create_future())
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.shield(asking)
        except TimeoutError:
            raise errors.timeout() from None

    def displace(self) -> None:
        """End now, with a word to each interest."""
        for interest in [each for interests in self._interests.values() for each in interests]:
            interest.is_displaced = True
            interest.wake()
        self._interests.clear()
        self._fail(errors.unavailable())
        if self._task is not None:
            self._task.cancel()

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # --- Ear ----------------------------------------------------------------------------------------------------------

    def opened(self, honoured: Set[str] | None) -> None:
        self._honoured = honoured or frozenset()
        if honoured is not None:  # a stream of the earlier revisions begins without an answer to a request
            self._responded()
        self._end_trials()
        self._is_open.set()

    def updated(self, address: str) -> None:
        """Also of a resource below one that is subscribed to, as the specification has it."""
        if len(address) > MAX_CHARACTERS:
            return
        for each in (address, *_parents(address)):
            for interest in self._interests.get(each, ()):
                if not interest.has_news:
                    interest.tell()

    # ------------------------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        failures = 0
        try:
            while await self._is_wanted():
                began_s = asyncio.get_running_loop().time()
                problem = await self._attempt()
                self._lost |= self._kept & self._interests.keys()
                self._kept.clear()
                if asyncio.get_running_loop().time() - began_s >= STEADY_S:
                    failures = 0
                if problem is not None:
                    log.info("vendor not heard", vendor=self.destination.key.vendor, fault=problem.fault.value)
                    self._fail(problem)
                    retry_after_s = problem.retry_after_s or 0
                    if not retry_after_s or problem.evidence is not Evidence.NONE:  # the circuit let it try
                        failures += 1
                    await self._pause(max(_longest_pause_s(failures), retry_after_s))
        finally:
            self._fail(errors.unavailable())
            self._on_end(self)

    async def _attempt(self) -> VendorProblem | None:
        """Listen until the stream ends. The problem, if there was one."""
        try:
            if not await self._listen() and not await self._listen():
                return errors.unavailable("The vendor drops its sessions immediately.")
        except VendorProblem as problem:
            return problem
        except Exception:  # a fault with one vendor must not silence it for good
            log.exception("listening to a vendor failed", vendor=self.destination.key.vendor)
            return errors.unavailable()
        return errors.interrupted() if self._interests else None

    async def _listen(self) -> bool:
        """False if the vendor does not know the session. Raises: VendorProblem."""
        self._is_open.clear()
        self._trials = self._pool.circuits.enter(self.destination)  # as a call: an open circuit is asked nothing
        try:
            deadline = asyncio.get_running_loop().time() + self.destination.timeout_s
            session = await self._pool.lease(self.destination, deadline=deadline)
            return await self._listen_in(session)
        finally:
            self._end_trials()

    async def _listen_in(self, session: VendorSession) -> bool:
        """As `_listen`."""
        listen = self._listen_anew if session.is_modern else self._listen_and_subscribe
        try:
            await listen(session)
        except StaleSession as stale:
            self._pool.evict(self.destination, session, is_of_other_era=isinstance(stale, OtherEra))
            return False
        except VendorProblem as problem:
            # Only this: a vendor may have no streams, and answer calls all the same.
            if problem.evidence is Evidence.CONNECT_FAILED:
                self._pool.circuits.record(self.destination, problem.evidence)
            raise
        return True

    def _responded(self) -> None:
        self._pool.circuits.record(self.destination, Evidence.RESPONDED)

    def _end_trials(self) -> None:
        trials, self._trials = self._trials, ()
        self._pool.circuits.exit(trials)

    async def _is_wanted(self) -> bool:
        """Whether there is an address, now or in a moment."""
        if not self._interests:
            self._changed.clear()
            await _either(self._changed.wait(), asyncio.sleep(LINGER_S))
        return bool(self._interests)

    async def _pause(self, longest_s: float) -> None:
        """Ends early when an address is asked for, and never before FIRST_PAUSE_S: asking must be no flood."""
        self._changed.clear()
        await asyncio.sleep(FIRST_PAUSE_S)
        await _either(self._changed.wait(), asyncio.sleep(min(longest_s, LONGEST_PAUSE_S) * random.uniform(0.5, 1.0)))  # noqa: S311

    # --- vendors of the earlier revisions -----------------------------------------------------------------------------

    async def _listen_and_subscribe(self, session: VendorSession) -> None:
        await _either(session.listen(self, ()), self._keep_subscribed(session), _end_of(session))

    async def _keep_subscribed(self, session: VendorSession) -> None:
        """Until no address is wanted any more. Raises: VendorProblem; StaleSession."""
        await self._is_open.wait()
        while True:
            self._changed.clear()
            missing = [own for own in self._interests if own not in self._kept]
            for own, answer in await self._ask(session, SUBSCRIBE, missing):
                if isinstance(answer, VendorProblem):
                    self._end_asking(own, answer)
                else:
                    self._settle(own, answer if isinstance(answer, replies.RpcError) else None)
            unwanted = [own for own in self._kept if own not in self._interests]
            self._kept.difference_update(unwanted)
            await self._ask(session, UNSUBSCRIBE, unwanted)
            if not self._changed.is_set() and not await self._is_wanted():
                return
            # An address without an answer is asked for again: it must not take the others' stream from them.
            has_all = self._interests.keys() <= self._kept
            await _either(self._changed.wait(), *(() if has_all else (asyncio.sleep(ASK_AGAIN_S),)))

    async def _ask(
        self, session: VendorSession, method: str, addresses: Sequence[str]
    ) -> list[tuple[str, replies.VendorResult | replies.RpcError | VendorProblem]]:
        """Nothing is sent while the circuit is open. Raises: StaleSession; VendorProblem for a refused credential."""
        found: list[tuple[str, replies.VendorResult | replies.RpcError | VendorProblem]] = []
        for start in range(0, len(addresses), ASKED_AT_ONCE):
            some = addresses[start : start + ASKED_AT_ONCE]
            if method == SUBSCRIBE:  # those who wanted the others may have left meanwhile
                some = [own for own in some if own in self._interests]
            try:
                self._pool.circuits.check(self.destination)
            except VendorProblem as problem:
                found += [(own, problem) for own in some]
                continue
            deadline = asyncio.get_running_loop().time() + min(self.destination.timeout_s, ASK_WITHIN_S)
            requests = (session.request(RpcRequest(method, _named(own), deadline)) for own in some)
            answers = await asyncio.gather(*requests, return_exceptions=True)
            for own, answer in zip(some, answers, strict=True):
                if isinstance(answer, VendorProblem) and not answer.is_rejection:
                    found.append((own, answer))
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    self._responded()
                    found.append((own, answer))
        return found

    def _end_asking(self, own: str, problem: VendorProblem) -> None:
        asking = self._asking.pop(own, None)
        if asking is not None and not asking.done():
            asking.set_exception(problem.copy())
            asking.exception()

    def _settle(self, own: str, refusal: replies.RpcError | None) -> None:
        if refusal is not None:
            self._refuse(own, refusal)
            return
        self._kept.add(own)
        was_lost = own in self._lost
        self._lost.discard(own)
        for interest in self._interests.get(own, ()):
            interest.is_rejected = False
            if was_lost or interest.is_promised:
                interest.tell()
            interest.is_promised = False
        asking = self._asking.pop(own, None)
        if asking is not None and not asking.done():
            asking.set_result(None)

    # --- vendors of 2026-07-28 ----------------------------------------------------------------------------------------

    async def _listen_anew(self, session: VendorSession) -> None:
        """One stream after the other, each with all addresses. Raises: VendorProblem; StaleSession."""
        current: asyncio.Task[None] | None = None
        try:
            while await self._is_wanted():
                await asyncio.sleep(SETTLE_S)
                self._changed.clear()
                self._is_open.clear()
                wanted = frozenset(self._interests)
                former, current = current, asyncio.ensure_future(session.listen(self, sorted(wanted)))
                try:
                    await _either(_joined(current), self._is_open.wait())
                finally:
                    await _cancelled(former)
                if current.done():
                    return current.result()
                self._kept = set(wanted & self._honoured)
                for own in wanted:
                    if own in self._honoured:
                        self._settle(own, None)
                    else:
                        self._refuse(own, None)
                await _either(
                    _joined(current), self._until_others_are_wanted(wanted & self._honoured), _end_of(session)
                )
                if session.is_ended:
                    return None
                if current.done():
                    return current.result()
        finally:
            await _cancelled(current)

    async def _until_others_are_wanted(self, wanted: Set[str]) -> None:
        while self._interests.keys() == wanted:
            self._changed.clear()
            await self._changed.wait()

    # ------------------------------------------------------------------------------------------------------------------

    def _refuse(self, own: str, error: replies.RpcError | None) -> None:
        self._lost.discard(own)
        asking = self._asking.pop(own, None)
        if asking is not None and not asking.done():
            asking.set_exception(RefusedByVendor(error))
            asking.exception()  # the one who asked may have left
        for interest in self._interests.pop(own, ()):
            interest.is_refused = True
            interest.tell()

    def _fail(self, problem: VendorProblem) -> None:
        """End all waits for an answer to this attempt."""
        asking, self._asking = self._asking, {}
        for each in asking.values():
            if not each.done():
                each.set_exception(problem.copy())
                each.exception()
        if problem.is_rejection:
            for interests in self._interests.values():
                for interest in interests:
                    interest.is_rejected = True
                    interest.wake()


def _longest_pause_s(failures: int) -> float:
    # Of a vendor that was away for half a day, the whole power would be past any float.
    return min(FIRST_PAUSE_S * 2.0 ** min(failures - 1, 10), LONGEST_PAUSE_S)


def _named(own: str) -> Mapping[str, Any]:
    return {"uri": own}


def _parents(address: str) -> list[str]:
    """Addresses above it, each with and without the slash at its end."""
    found: list[str] = []
    end = len(address)
    while len(found) < 2 * MAX_PARENTS and (end := address.rfind("/", 0, end)) > 0:
        found += [address[: end + 1], address[:end]]
    return [each for each in found if each != address]


async def _end_of(session: VendorSession) -> None:
    """Until the pool has given it up."""
    while not session.is_ended:  # noqa: ASYNC110 (an event would cost each session of calls)
        await asyncio.sleep(END_LOOK_S)


async def _joined(task: asyncio.Task[None]) -> None:
    """Ends with the task, and leaves it alone if it is left itself."""
    await asyncio.wait([task])


async def _either(*works: Awaitable[Any]) -> None:
    """Until the first of them ends, with its exception; the others are cancelled."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _cancelled(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

"""The vendors that this process listens to for its subscribers: bounded, and one stream for each credential.

The streams to one server are shared fairly: without a free one, an organization that asks gets one from the one with
the most, if that keeps as many. All subscribers of the stream that ends read again, so this is rare: an organization
that comes and goes must not make others read all the time.

docs/decisions/0113
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from functools import partial

from orgs.principal import Principal
from proxy.sessions.shared_places import SharedPlaces
from proxy.vendors import errors
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.listening import Interest, VendorListening
from proxy.vendors.pool import SessionPool

_ALL = ("all",)  # no vendor is called so
DISPLACES_EVERY_S = 60.0  # one organization at one vendor


class HeldInterest:
    """An interest with its places. To be given back."""

    __slots__ = ("holders", "interest", "key")

    def __init__(self, interest: Interest, key: PoolKey, holders: tuple[Hashable, ...]) -> None:
        self.interest, self.key, self.holders = interest, key, holders


class ListeningHub:
    """One event loop."""

    def __init__(
        self,
        pool: SessionPool,
        *,
        of_all: int,
        of_vendor: int,
        of_organization: int,
        of_subject: int,
        streams_of_vendor: int,
        streams_of_organization: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Bounds of interests; `streams`: to one vendor, of all and of one organization."""
        self._pool = pool
        self._places = SharedPlaces(of_all, of_vendor, of_organization, of_subject)
        self._streams = SharedPlaces(streams_of_vendor, streams_of_organization)
        self._most_of_organization = streams_of_organization
        self._listenings: dict[PoolKey, VendorListening] = {}
        self._holders: dict[
            PoolKey, tuple[Hashable, Hashable]
        ] = {}  # of the stream: server, organization at the vendor
        self._displaced_s: dict[Hashable, float] = {}  # by those who asked, the latest last
        self._monotonic = monotonic
        pool.on_resource_updated = self._updated

    @property
    def taken(self) -> int:
        """Interests."""
        return self._places.taken(_ALL)

    @property
    def stream_count(self) -> int:
        return len(self._listenings)

    def take(
        self,
        principal: Principal,
        destination: Destination,
        own: str,
        wake: Callable[[], None],
        *,
        is_promised: bool = False,
        has_gap: bool = False,
    ) -> HeldInterest:
        """Listen for changes of an address. Raises: VendorProblem without a place. An organization with more streams
        may lose one of them: its interests are displaced.

        `is_promised`: as in `Interest`. `has_gap`: a change may have been missed before, even if others listened.
        """
        key, server = destination.key, _server_of(destination)
        holders = (_ALL, server, principal.org_id, (principal.org_id, principal.subject))
        if not self._places.take(*holders):
            raise errors.unavailable("Too many resources are subscribed to.")
        listening = self._listenings.get(key)
        if listening is None:
            streams = (server, (key.org_id, key.vendor))
            if not self._take_stream(*streams):
                self._places.give_back(*holders)
                raise errors.unavailable("The gateway listens to this vendor with too many credentials.")
            self._holders[key] = streams
            listening = self._listenings[key] = VendorListening(self._pool, destination, partial(self._end, key))
        listening.destination = destination  # an equal key may have a newer one: of a credential that was sealed again
        held = HeldInterest(Interest(own, wake, is_promised=is_promised), key, holders)
        listening.add(held.interest, has_gap=has_gap)
        return held

    def give_back(self, held: HeldInterest) -> None:
        self._places.give_back(*held.holders)
        listening = self._listenings.get(held.key)
        if listening is not None:
            listening.remove(held.interest)

    async def confirm(self, held: HeldInterest, *, deadline: float) -> None:
        """Wait until the vendor has agreed. Raises: VendorProblem; RefusedByVendor."""
        listening = self._listenings.get(held.key)
        if listening is None:
            raise errors.unavailable()
        await listening.confirmed(held.interest.own, deadline=deadline)

    async def aclose(self) -> None:
        await asyncio.gather(*(each.aclose() for each in list(self._listenings.values())), return_exceptions=True)

    def _updated(self, key: PoolKey, address: str) -> None:
        listening = self._listenings.get(key)
        if listening is not None:
            listening.updated(address)

    def _take_stream(self, server: Hashable, asking: Hashable) -> bool:
        if self._streams.take(server, asking):
            return True
        fewest = self._streams.taken(asking) + 1  # that the other one must keep
        if fewest > self._most_of_organization:
            return False
        sharing = [(key, holder) for key, (at, holder) in self._holders.items() if at == server]
        loser = max(sharing, key=lambda each: self._streams.taken(each[1]), default=None)
        if loser is None or self._streams.taken(loser[1]) <= fewest or not self._may_displace(asking):
            return False
        newest = next(key for key, holder in reversed(sharing) if holder == loser[1])
        listening = self._listenings[newest]
        self._end(newest, listening)
        listening.displace()
        return self._streams.take(server, asking)

    def _may_displace(self, asking: Hashable) -> bool:
        """And then it has done so."""
        now_s = self._monotonic()
        while self._displaced_s and next(iter(self._displaced_s.values())) <= now_s - DISPLACES_EVERY_S:
            del self._displaced_s[next(iter(self._displaced_s))]
        if asking in self._displaced_s:
            return False
        self._displaced_s[asking] = now_s
        return True

    def _end(self, key: PoolKey, listening: VendorListening) -> None:
        if self._listenings.get(key) is listening:  # it may have been displaced
            del self._listenings[key]
            self._streams.give_back(*self._holders.pop(key))


def _server_of(destination: Destination) -> Hashable:
    """Organizations share the connections to an address of the catalog, and those to no other."""
    key = destination.key
    return ("server", key.vendor, None if destination.fixed_address else key.org_id)

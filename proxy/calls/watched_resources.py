"""The resources whose changes one stream tells, as long as its caller may read them. docs/decisions/0113"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from gateway.catalog.vendor import Vendor
from orgs.allowed_items import ItemType
from proxy.calls.find_tool import FIND_DEADLINE_S
from proxy.calls.item_rights import rights_to
from proxy.calls.open_destination import usable_now
from proxy.hot_path_database import DatabaseUnavailable
from proxy.outcomes import Denied
from proxy.protocol.item_kinds import Capability
from proxy.request_context import RequestContext
from proxy.sessions.listening_hub import HeldInterest
from proxy.sessions.session_subscriptions import Subscription
from proxy.vendors.destination import Destination
from proxy.vendors.errors import VendorProblem

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Watched:
    """`held`: None while there is no place for it, or no usable token: it is tried again.

    `has_gap`: it may have changed while the stream did not listen.
    """

    subscription: Subscription
    has_gap: bool
    held: HeldInterest | None = None


class WatchedResources:
    """Of one event loop. `wake` is called when there may be something to tell."""

    def __init__(self, context: RequestContext, wake: Callable[[], None]) -> None:
        self._context, self._wake = context, wake
        self._watched: dict[str, _Watched] = {}
        self._refused: dict[str, Subscription] = {}  # by their vendors, and the caller was told

    @property
    def addresses(self) -> list[str]:
        return list(self._watched)

    @property
    def subscriptions(self) -> list[Subscription]:
        """Also those that their vendors refuse for now."""
        return [*{**self._refused, **{address: each.subscription for address, each in self._watched.items()}}.values()]

    @property
    def needs_review(self) -> bool:
        """Whether a vendor refuses a credential, or an address is not listened to."""
        return any(
            each.held is None or each.held.interest.is_rejected or each.held.interest.is_displaced
            for each in self._watched.values()
        )

    async def watch(self, subscriptions: Iterable[Subscription], *, has_gap: bool = False) -> None:
        """These and no others. `has_gap`: their resources may have changed while no stream told of it."""
        wanted = {each.address: each for each in subscriptions}
        for address, each in list(self._watched.items()):
            if wanted.get(address) != each.subscription:  # it may lead to another vendor by now
                self._drop(address)
        self._refused = {address: each for address, each in self._refused.items() if wanted.get(address) == each}
        for address in wanted.keys() - self._watched.keys():
            found = self._watched[address] = _Watched(wanted[address], has_gap)
            await self._judge(found)

    async def review(self) -> list[str]:
        """Judge all again, by the caller's rights of now. Returns the addresses that the caller may not hear of any
        more: they are watched no longer."""
        before = set(self._watched)
        for each in list(self._watched.values()):
            await self._judge(each)
        return sorted(before - self._watched.keys())

    def take_news(self) -> list[str]:
        """The addresses whose resource may have changed since the last time."""
        found = []
        for address, each in list(self._watched.items()):
            interest = None if each.held is None else each.held.interest
            if interest is None or not interest.has_news:
                continue
            interest.has_news = False
            if not (interest.is_refused and address in self._refused):
                found.append(address)
            self._refused.pop(address, None)
            if interest.is_refused:  # told for the last time: a read says what is there now
                self._refused[address] = each.subscription
                self._drop(address)
        return found

    def close(self) -> None:
        for address in list(self._watched):
            self._drop(address)

    async def _judge(self, watched: _Watched) -> None:
        """Listen where the caller's credential leads now and nowhere else, or watch it no longer."""
        context, found = self._context, watched.subscription
        vendor = context.caller.catalog.get(found.vendor)
        if vendor is None:
            self._drop(found.address)
            return
        try:
            usable = await usable_now(context, vendor)
            is_refused = isinstance(usable, Denied) or await self._denied(vendor, usable[1], found.own) is not None
        # No token at the moment, or the tools of an app are not known.
        except (VendorProblem, DatabaseUnavailable) as problem:
            log.info("resource not listened to", vendor=vendor.slug, fault=type(problem).__name__)
            self._leave(watched)
            return
        if isinstance(usable, Denied) or is_refused:
            self._drop(found.address)
        elif context.runtime.items.may_have(Capability.UPDATES, usable[1].key):
            self._listen(watched, usable[1])
        else:
            self._leave(watched)

    async def _denied(self, vendor: Vendor, destination: Destination, own: str) -> Denied | None:
        """Raises: VendorProblem."""
        deadline = asyncio.get_running_loop().time() + FIND_DEADLINE_S
        rights = await rights_to(self._context, vendor, destination, own, deadline=deadline)
        return rights.refused(ItemType.RESOURCES, own)

    def _listen(self, watched: _Watched, destination: Destination) -> None:
        hub = self._context.runtime.listening
        if watched.held is not None and watched.held.interest.is_displaced:
            self._leave(watched)
        former = watched.held
        if former is not None and former.key == destination.key:
            return
        if self._watched.get(watched.subscription.address) is not watched:
            return  # the stream has ended meanwhile
        try:
            held = hub.take(
                *(self._context.caller.principal, destination, watched.subscription.own, self._wake),
                is_promised=True,
                has_gap=watched.has_gap or former is not None,  # with another credential it may be another resource
            )
        except VendorProblem as problem:
            log.info("resource not listened to", vendor=destination.key.vendor, fault=problem.detail)
            self._leave(watched)
            return
        watched.held, watched.has_gap = held, False
        if former is not None:
            hub.give_back(former)

    def _leave(self, watched: _Watched) -> None:
        """Until it is judged again: a former credential may lead to things that the caller has lost."""
        held, watched.held, watched.has_gap = watched.held, None, True
        if held is not None:
            self._context.runtime.listening.give_back(held)

    def _drop(self, address: str) -> None:
        watched = self._watched.pop(address, None)
        if watched is not None and watched.held is not None:
            self._context.runtime.listening.give_back(watched.held)
            watched.held = None

"""The pipeline of resources/subscribe and resources/unsubscribe, and of one address of `subscriptions/listen`.

The rights are those of resources/read, and the row in the request log is the same. docs/decisions/0113
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import msgspec
from django.conf import settings

from proxy.calls import call_audit, vendor_errors
from proxy.calls.ask_item import ItemCall
from proxy.calls.call_audit import OpenCall
from proxy.calls.find_item import FoundItem, find_resource
from proxy.calls.list_items import offered
from proxy.calls.recorded_call import run_recorded
from proxy.outcomes import BadArguments, Delivered, Failed, ItemOutcome, UnknownItem
from proxy.protocol import item_addresses
from proxy.protocol.item_kinds import UNSUBSCRIBE, Capability
from proxy.request_context import RequestContext
from proxy.sessions.listening_hub import HeldInterest
from proxy.sessions.session_subscriptions import Holder, Subscription
from proxy.timing import Timing
from proxy.vendors.errors import VendorProblem
from proxy.vendors.listening import REFUSED, RefusedByVendor

CONFIRM_WITHIN_S = 8.0
# For the stream to take over, in this process. In another one it asks the vendor itself.
HELD_S = 10.0
NOT_ANNOUNCED = "The vendor of this resource does not announce its changes."
# Of an address, in UTF-8. It is kept as the caller has it and as the vendor has it, for each session. All of a session
# fit into one reply of the exchange: a longer reply closes the connection to it, which all organizations share.
MAX_KEPT_BYTES = 2 * 1024
TOO_LONG = f"The address of a subscription must have at most {MAX_KEPT_BYTES} bytes."
TOO_MANY = {
    Holder.SESSION: "The session is subscribed to too many resources.",
    Holder.SUBJECT: "The sessions of this caller are subscribed to too many resources.",
    Holder.ORGANIZATION: "The sessions of this organization are subscribed to too many resources.",
}
TOO_MANY_WITHIN_AN_HOUR = "The organization has subscribed to too many resources within an hour."


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A subscription that the vendor has agreed to. `held`: keeps it for HELD_S."""

    found: Subscription
    held: HeldInterest


async def subscribe(context: RequestContext, call: ItemCall) -> ItemOutcome:
    """Keeps the subscription for the caller's session. Raises: FAIL_CLOSED."""
    work = _unsubscribe if call.method == UNSUBSCRIBE else _subscribe
    return await run_recorded(context, call, work)


async def confirm(context: RequestContext, call: ItemCall) -> Confirmed | ItemOutcome:
    """For a stream of this request, which keeps it. Raises: FAIL_CLOSED."""
    confirmed: list[Confirmed] = []

    async def work(own: RequestContext, asked: ItemCall, row: OpenCall) -> ItemOutcome:
        found = await _confirmed(own, asked, row)
        if not isinstance(found, Confirmed):
            return found
        confirmed.append(found)
        return Delivered(b"{}", is_error=False)

    # Addresses of one request are asked for at the same time, and each has times of its own.
    outcome = await run_recorded(replace(context, timing=Timing()), call, work)
    return confirmed[0] if confirmed else outcome


async def _subscribe(context: RequestContext, call: ItemCall, row: OpenCall) -> ItemOutcome:
    if not call.fault and len(call.name.encode()) > MAX_KEPT_BYTES:
        call = msgspec.structs.replace(call, fault=TOO_LONG)
    confirmed = await _confirmed(context, call, row)
    if not isinstance(confirmed, Confirmed):
        return confirmed
    live, session = context.runtime, context.session
    if session is None:
        return UnknownItem(call.name, is_offered=False)
    org_id = str(context.caller.principal.org_id)
    if not (await live.store.admit(settings.NEW_SUBSCRIPTIONS, org_id, ())).allowed:
        return BadArguments(TOO_MANY_WITHIN_AN_HOUR)
    full = await live.subscriptions.add(context.caller.principal, session, confirmed.found)
    if full is not None:
        return BadArguments(TOO_MANY[full])
    live.shared_changes.session_changed(session)
    return Delivered(b"{}", is_error=False)


async def _unsubscribe(context: RequestContext, call: ItemCall, row: OpenCall) -> ItemOutcome:
    """Rights are not asked for: they may have ended, and nothing is told of the address."""
    named = item_addresses.split(call.name, context.caller.catalog.by_slug) if call.vendor is None else None
    if named is not None and not call.fault:
        row.vendor, row.item = named[0], call.audited(named[1])
    # First: a vendor that does not answer at the moment keeps none.
    if context.session is not None and not call.fault:
        await context.runtime.subscriptions.remove(context.caller.principal, context.session, call.name)
        context.runtime.shared_changes.session_changed(context.session)
    refusal = await _unusable(context, call)
    return Delivered(b"{}", is_error=False) if refusal is None else refusal


async def _confirmed(context: RequestContext, call: ItemCall, row: OpenCall) -> Confirmed | ItemOutcome:
    refusal = await _unusable(context, call)
    if refusal is not None:
        return refusal
    found = await find_resource(context, call.name, call.vendor)
    if not isinstance(found, FoundItem):
        return found
    call_audit.set_credential(row, found.vendor.slug, found.credential)
    row.item = call.audited(found.own)
    if Capability.UPDATES not in found.declared:
        return BadArguments(NOT_ANNOUNCED)
    hub = context.runtime.listening
    try:
        held = hub.take(context.caller.principal, found.destination, found.own, lambda: None)
    except VendorProblem as problem:
        return _refusal(context, found, problem)
    try:
        with context.timing.vendor:
            await hub.confirm(held, deadline=asyncio.get_running_loop().time() + CONFIRM_WITHIN_S)
    except BaseException as fault:
        hub.give_back(held)
        if isinstance(fault, VendorProblem | RefusedByVendor):
            return _refusal(context, found, fault)
        raise
    asyncio.get_running_loop().call_later(HELD_S, hub.give_back, held)
    context.runtime.caller_cache.note_credential(found.credential.id)
    return Confirmed(Subscription(call.name, found.vendor.slug, found.own), held)


async def _unusable(context: RequestContext, call: ItemCall) -> ItemOutcome | None:
    if Capability.UPDATES not in await offered(context, call.vendor):
        return UnknownItem(call.name, is_address=True, is_offered=False)
    return BadArguments(call.fault) if call.fault else None


def _refusal(context: RequestContext, found: FoundItem, fault: VendorProblem | RefusedByVendor) -> ItemOutcome:
    if isinstance(fault, VendorProblem):
        return Failed(found.vendor.slug, fault.fault, fault.detail, fault.retry_after_s, found.credential)
    if fault.error is None:
        return BadArguments(REFUSED)
    return vendor_errors.for_caller(context, found.vendor, fault.error)

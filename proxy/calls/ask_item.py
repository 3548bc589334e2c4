"""The pipeline of resources/read, prompts/get and completion/complete: as that of a tool call, and always a read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from audit.call_status import CallKind
from gateway.catalog.vendor import Vendor
from proxy.cache.result_cache import VendorOutcome
from proxy.caller import Caller
from proxy.calls import call_audit, vendor_request
from proxy.calls.ask_modern_caller import with_own_state
from proxy.calls.asking_request import AskingRequest
from proxy.calls.call_audit import OpenCall
from proxy.calls.decide import may_use_item
from proxy.calls.find_item import FoundItem, find_prompt, find_resource
from proxy.calls.list_items import offered
from proxy.calls.recorded_call import run_recorded
from proxy.calls.send_askable import sender
from proxy.outcomes import BadArguments, Delivered, Denied, ItemOutcome, UnknownItem
from proxy.progress_relay import ProgressRelay
from proxy.protocol import item_addresses, item_results
from proxy.protocol.item_kinds import COMPLETE, GET, READ, SUBSCRIBE, UNSUBSCRIBE, Capability
from proxy.protocol.modern import input_required
from proxy.protocol.modern.input_required import Answers
from proxy.request_context import RequestContext
from proxy.vendors import fair_scheduler

NO_COMPLETION = b'{"completion":{"values":[],"total":0,"hasMore":false}}'
KINDS = {
    READ: CallKind.RESOURCE,
    SUBSCRIBE: CallKind.RESOURCE,
    UNSUBSCRIBE: CallKind.RESOURCE,
    GET: CallKind.PROMPT,
    COMPLETE: CallKind.COMPLETION,
}
_REWRITES: dict[str, Callable[[bytes, str], bytes]] = {READ: item_results.of_read, GET: item_results.of_prompt}


class ItemCall(msgspec.Struct, frozen=True):
    """A request for one resource or prompt. `name`: its address or name as requested; `is_address`: which of the two.

    `params`: for the vendor, without the name.
    """

    method: str
    name: str
    is_address: bool
    params: Mapping[str, Any]
    vendor: Vendor | None = None  # None at the unified endpoint: the name or address decides
    meta: Mapping[str, Any] | None = None
    relay: ProgressRelay | None = None
    fault: str = ""  # why the request is invalid: it is counted and recorded, and not sent
    capabilities: Mapping[str, Any] | None = None  # of a caller that a vendor may ask something; None: it cannot be
    answers: Answers | None = None  # of a retry, to what the vendor asked

    @property
    def route(self) -> str:
        """Its name in metrics. Contract: 7"""
        return "mcp" if self.vendor is None else "vendor_mcp"

    @property
    def capability(self) -> Capability:
        return Capability.RESOURCES if self.is_address else Capability.PROMPTS

    @property
    def is_cli(self) -> bool:
        return False

    def open_row(self) -> OpenCall:
        return call_audit.open_item_record(
            vendor=self.vendor.slug if self.vendor else "", kind=KINDS[self.method], item=self.audited(self.name)
        )

    def audited(self, name: str) -> str:
        return item_addresses.audited(name) if self.is_address else name

    def params_for(self, own: str) -> dict[str, Any]:
        """With the vendor's own name or address."""
        if self.method == COMPLETE:
            ref = {"type": "ref/resource", "uri": own} if self.is_address else {"type": "ref/prompt", "name": own}
            return {"ref": ref, **self.params}
        return {"uri" if self.is_address else "name": own, **self.params}


async def ask_item(context: RequestContext, call: ItemCall) -> ItemOutcome:
    """Runs one request until its audit row is committed. Raises: FAIL_CLOSED."""
    return await run_recorded(context, call, _find_and_send)


async def _find_and_send(context: RequestContext, call: ItemCall, row: OpenCall) -> ItemOutcome:
    if call.fault:
        is_offered = call.capability in await offered(context, call.vendor)
        return BadArguments(call.fault) if is_offered else UnknownItem(call.name, is_offered=False)
    find = find_resource if call.is_address else find_prompt
    found = await find(context, call.name, call.vendor)
    if not isinstance(found, FoundItem):
        return found
    call_audit.set_credential(row, found.vendor.slug, found.credential)
    row.item = call.audited(found.own)
    if call.method == COMPLETE and Capability.COMPLETIONS not in found.declared:
        return Delivered(NO_COMPLETION, is_error=False)
    outcome = await _send(context, call, found, row)
    if isinstance(outcome, Denied | BadArguments):
        return outcome
    context.runtime.caller_cache.note_credential(found.credential.id)
    # A caller that used the vendor's own address gets the vendor's own addresses back, byte for byte.
    rewrite = None if call.vendor is not None or (found.is_bare and call.is_address) else _REWRITES.get(call.method)
    if rewrite is None or not isinstance(outcome, Delivered):
        return outcome
    work = partial(rewrite, outcome.raw_result, found.vendor.slug)
    size_bytes = len(outcome.raw_result)
    raw = await fair_scheduler.run_small_inline(context.caller.principal.org_id, work, size_bytes)
    return replace(outcome, raw_result=raw)


async def _send(
    context: RequestContext, call: ItemCall, found: FoundItem, row: OpenCall
) -> VendorOutcome | BadArguments:
    params = vendor_request.with_meta(context, call.params_for(found.own), call.meta)
    if call.method not in input_required.MAY_ASK:
        return await vendor_request.send(
            *(context, found.vendor, found.credential, found.destination, call.method, params),
            relay=call.relay,
            is_repeatable=True,
        )
    rule = partial(_refused, found)
    request = AskingRequest(call.method, found.own, call.params, found.vendor, found.credential, rule)
    answers = None if call.answers is None else await with_own_state(context, request, call.answers)
    if isinstance(answers, BadArguments):
        return answers
    send = sender(
        *(context, request, row),
        destination=found.destination,
        params=params,
        relay=call.relay,
        capabilities=call.capabilities,
        answers=answers,
        is_repeatable=True,
    )
    return await send()


def _refused(found: FoundItem, caller: Caller) -> Denied | None:
    return may_use_item(caller.principal, caller.organization, found.vendor, found.item)

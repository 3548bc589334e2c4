"""The pipeline of a tool call, for MCP, per-vendor MCP and CLI.

admit (limit, epochs) > find the tool > decide > record the intent of a writing call > send > record the outcome.
`recorded_call` has the first and the last step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from gateway.catalog.vendor import Vendor
from proxy.caller import Caller
from proxy.calls import caching, call_audit, call_figures, vendor_request
from proxy.calls.ask_modern_caller import with_own_state
from proxy.calls.asking_request import CALL, AskingRequest
from proxy.calls.call_audit import OpenCall
from proxy.calls.decide import may_call_tool
from proxy.calls.find_tool import FoundTool, find_or_fetch_tool
from proxy.calls.recorded_call import FAIL_CLOSED, admit_call, run_recorded
from proxy.calls.send_askable import sender
from proxy.outcomes import BadArguments, Delivered, Denial, Denied, Outcome
from proxy.progress_relay import ProgressRelay
from proxy.protocol import cli_schema, item_results
from proxy.protocol.modern.input_required import Answers
from proxy.request_context import RequestContext
from proxy.vendors import fair_scheduler


class ToolCall(msgspec.Struct, frozen=True):
    """A tool call as requested."""

    name: str
    arguments: Mapping[str, Any]
    vendor: Vendor | None = None  # None at the unified endpoint: the name's prefix decides
    cli: bool = False  # accepts command spellings
    meta: Mapping[str, Any] | None = None
    relay: ProgressRelay | None = None  # asks the vendor for progress; the caller may leave during the call
    fault: str = ""  # why the request is invalid: it is counted and recorded, and not sent
    # What in the request's headers contradicts the arguments, for a tool's JSON as listed; None: nothing.
    contradiction: Callable[[bytes], str | None] | None = None
    capabilities: Mapping[str, Any] | None = None  # of a caller that a vendor may ask something; None: it cannot be
    answers: Answers | None = None  # of a retry, to what the vendor asked

    @property
    def route(self) -> str:
        """Its name in metrics. Contract: 7"""
        return "cli" if self.cli else "mcp" if self.vendor is None else "vendor_mcp"

    @property
    def is_cli(self) -> bool:
        return self.cli

    def open_row(self) -> OpenCall:
        return call_audit.open_record(vendor=self.vendor.slug if self.vendor else "", tool=self.name)


async def call_tool(context: RequestContext, call: ToolCall) -> Outcome:
    """Runs one call until its audit row is committed. Internal errors are outcomes. Raises: FAIL_CLOSED."""
    return await run_recorded(context, call, _find_and_send)


async def refuse_unknown_vendor(context: RequestContext, slug: str, tool: str) -> Outcome:
    """Counted and recorded like every refusal."""
    status, open_row = "denied", partial(call_audit.open_record, vendor=slug, tool=tool)
    try:
        outcome: Outcome | None = await admit_call(context, open_row)
        if outcome is None:
            outcome = Denied(Denial.UNKNOWN_VENDOR, "There are no credentials for this vendor.", slug)
            status = await call_audit.record_outcome(context, open_row(), outcome)
    except FAIL_CLOSED as fault:
        call_figures.count_failure(context, "cli", fault, vendor=slug)
        raise
    call_figures.count_outcome(context, "cli", outcome, status, vendor=slug)
    return outcome


async def _find_and_send(context: RequestContext, call: ToolCall, row: OpenCall) -> Outcome:
    if call.fault:
        return BadArguments(call.fault)
    found = await find_or_fetch_tool(context, call.name, call.vendor, cli=call.cli)
    if not isinstance(found, FoundTool):
        return found
    call_audit.set_tool(row, found)
    outcome = await _decide_and_send(context, call, found, row)
    if isinstance(outcome, Denied):
        return outcome
    context.runtime.caller_cache.note_credential(found.credential.id)
    if call.vendor is None and isinstance(outcome, Delivered) and _names_resources(context, found, outcome):
        return await _with_exposed_addresses(context, found.vendor, outcome)
    return outcome


def _names_resources(context: RequestContext, found: FoundTool, outcome: Delivered) -> bool:
    """Whether the result may name a resource that can be read here."""
    has_any = context.runtime.items.may_have_resources(found.destination.key)
    return has_any and item_results.mentions_address(outcome.raw_result)


async def _with_exposed_addresses(context: RequestContext, vendor: Vendor, outcome: Delivered) -> Delivered:
    """After the cache: at the vendor's own endpoint, addresses are the vendor's own."""
    work = partial(item_results.of_tool, outcome.raw_result, vendor.slug)
    owner, size_bytes = context.caller.principal.org_id, len(outcome.raw_result)
    return replace(outcome, raw_result=await fair_scheduler.run_small_inline(owner, work, size_bytes))


async def _decide_and_send(context: RequestContext, call: ToolCall, found: FoundTool, row: OpenCall) -> Outcome:
    denied = _refused(found, context.caller)
    if denied is not None:
        return denied
    if call.cli or call.contradiction is not None or call.answers is not None:
        checked = await _checked(context, call, found)
        if isinstance(checked, BadArguments):
            return checked
        call = checked
    send = _sender(context, call, found, row)
    if found.policy.read_only:
        # Unknown members of `_meta` may change the result, so such a call is not cached.
        is_plain = not call.meta and call.answers is None
        if not is_plain or not found.policy.is_cacheable or not (call.cli or found.policy.named):
            return await caching.uncached_read(context, found, send)
        outcome, context.cache = await caching.cached_read(
            *(context, found, call.arguments, send),
            # A vendor may put off also a caller that can answer nothing, with a state of that caller alone.
            is_shareable=call.relay is None and call.capabilities is None,
        )
        return outcome
    # A write is recorded before it is sent: if the process dies, the row remains.
    await call_audit.record_intent(context, row)
    return await caching.invalidating_write(context, found, send)


def _refused(found: FoundTool, caller: Caller) -> Denied | None:
    return may_call_tool(
        *(caller.principal, caller.organization, found.vendor, found.tool.vendor_name),
        is_read_only=found.policy.read_only,
    )


def _asking_request(call: ToolCall, found: FoundTool) -> AskingRequest:
    return AskingRequest(
        *(CALL, found.tool.vendor_name, call.arguments, found.vendor, found.credential), partial(_refused, found)
    )


async def _checked(context: RequestContext, call: ToolCall, found: FoundTool) -> ToolCall | BadArguments:
    """The call as the vendor gets it: a command's dotted options are objects, the vendor's state is its own again."""
    owner = context.caller.principal.org_id
    if call.contradiction is not None:
        listed = found.listed.shown(found.tool.exposed_name, is_unified=call.vendor is None)
        check = partial(call.contradiction, listed)
        text = await fair_scheduler.run_small_inline(owner, check, len(listed))
        if text is not None:
            return BadArguments(text, is_header_mismatch=True)
    if call.cli and any("." in name for name in call.arguments):
        work = partial(_fold_dotted, dict(call.arguments), found)
        size_bytes = len(found.listed.definitions[found.tool.vendor_name])
        try:
            call = msgspec.structs.replace(
                call, arguments=await fair_scheduler.run_small_inline(owner, work, size_bytes)
            )
        except ValueError as fault:
            return BadArguments(str(fault))
    if call.answers is None:
        return call
    answers = await with_own_state(context, _asking_request(call, found), call.answers)
    return answers if isinstance(answers, BadArguments) else msgspec.structs.replace(call, answers=answers)


def _sender(context: RequestContext, call: ToolCall, found: FoundTool, row: OpenCall) -> caching.SendToVendor:
    sent = {"name": found.tool.vendor_name, "arguments": call.arguments}
    return sender(
        *(context, _asking_request(call, found), row),
        destination=found.destination,
        params=vendor_request.with_meta(context, sent, call.meta),
        relay=call.relay,
        capabilities=call.capabilities,
        answers=call.answers,
        is_repeatable=found.policy.read_only,
        definition=found.listed.definitions[found.tool.vendor_name],
    )


def _fold_dotted(arguments: dict[str, Any], found: FoundTool) -> dict[str, Any]:
    return cli_schema.fold_dotted(arguments, found.listed.definition(found.tool.vendor_name).get("inputSchema"))

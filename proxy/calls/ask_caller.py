"""Asks the caller of an earlier revision what a vendor asks in the middle of its call. docs/decisions/0110"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw

from oauth_ext.bearer import InvalidBearer
from proxy.cache.result_cache import VendorOutcome
from proxy.calls import call_audit
from proxy.calls.call_audit import OpenCall
from proxy.calls.decide import may_call_tool, may_use_vendor
from proxy.calls.find_tool import FoundTool
from proxy.outcomes import Delivered, Denial, Denied
from proxy.progress_relay import ProgressRelay
from proxy.protocol import questions
from proxy.protocol.modern import input_required
from proxy.protocol.modern.input_required import Answers, InputRequired
from proxy.protocol.questions import VendorQuestion
from proxy.request_context import RequestContext
from proxy.sessions.client_session import ClientSession
from proxy.timing import Timing
from proxy.vendors.errors import CallEnded
from proxy.vendors.tool_request import Ask, ToolRequest

MAX_ROUNDS = 20  # of one call
PAUSE_S = 1.0  # before a vendor that asked for nothing is asked again


def asking(context: RequestContext, relay: ProgressRelay | None, found: FoundTool, row: OpenCall) -> Ask | None:
    """None for a caller without a session, or without a stream."""
    session = context.session
    if session is None or relay is None:
        return None
    return partial(_ask, context, session, relay, found, row)


async def ask_meanwhile(timing: Timing, ask: Ask, question: VendorQuestion) -> questions.Reply | None:
    """As `ask`, while a vendor waits with its answer: the wait is not the vendor's time."""
    with timing.caller_wait():
        return await ask(question)


async def send_in_rounds(
    send: Callable[..., Awaitable[VendorOutcome]], ask: Ask, tool: ToolRequest, params: dict[str, Any], row: OpenCall
) -> VendorOutcome:
    """The outcome of `send`, which sends `params`. A vendor of the modern revision gets answers in further rounds."""
    asked: list[InputRequired] = []

    async def note(reply: InputRequired) -> VendorOutcome:
        asked.append(reply)
        return Delivered(input_required.unanswered(reply), is_error=True)

    outcome = await send(on_asked=note)
    for _ in range(MAX_ROUNDS):
        if not asked:
            break
        question = asked.pop()
        in_vain = input_required.asked_in_vain(question, tool.capabilities)
        if in_vain:
            return Delivered(input_required.failed(in_vain, question), is_error=True)
        try:
            answers = await _ask_in_turn(ask, question)
        except CallEnded as ended:
            return ended.denied
        if answers is None:
            return outcome
        tool = msgspec.structs.replace(tool, is_retry=True)
        input_required.answer_with(params, answers)
        outcome = await send(on_asked=note, tool=tool)
    return replace(outcome, is_personal=True) if row.item and isinstance(outcome, Delivered) else outcome


async def _ask_in_turn(ask: Ask, asked: InputRequired) -> Answers | None:
    """The answers to all questions of a vendor of the modern revision; None if one was not answered.

    Raises: CallEnded.
    """
    if not asked.questions:  # a vendor that puts off its work
        await asyncio.sleep(PAUSE_S)
    found = {}
    for key, raw in asked.questions.items():
        question = questions.read(bytes(raw))
        reply = None if question is None else await ask(question)
        if reply is None or not reply.is_result:
            return None
        found[key] = Raw(reply.raw)
    return Answers(asked.state, found or None)


async def _ask(
    context: RequestContext,
    session: ClientSession,
    relay: ProgressRelay,
    found: FoundTool,
    row: OpenCall,
    question: VendorQuestion,
) -> questions.Reply | None:
    """None for a question that this caller cannot answer. Raises: CallEnded; as `CallerCache.revalidated`."""
    if relay.is_closed or not questions.can_answer(question.method, question.mode, session.capabilities):
        return None
    call_audit.note_question(row, question.method)
    principal = context.caller.principal
    reply = await context.runtime.questions.ask(principal, session, found.vendor.slug, question, relay)
    denied = await _lost_right(context, found)
    if denied is not None:
        raise CallEnded(denied)
    return reply


async def _lost_right(context: RequestContext, found: FoundTool) -> Denied | None:
    """Minutes may have passed since the call was admitted: the rule that refuses it now."""
    known = context.caller
    epochs = await context.runtime.store.read_epochs(known.epoch_names)
    callers = context.callers or context.runtime.caller_cache
    try:
        caller = await callers.revalidated(context.bearer, known, epochs)
    except InvalidBearer as fault:
        text = f"The call ended while the vendor waited for an answer: {fault.reason}"
        return Denied(Denial.NO_SERVER_ACCESS, text, found.vendor.slug)
    usable = may_use_vendor(caller, found.vendor)
    if isinstance(usable, Denied):
        return usable
    if usable.id != found.credential.id:
        text = f"The credentials of {found.vendor.name} were replaced while it waited for an answer. Call again."
        return Denied(Denial.NO_CREDENTIALS, text, found.vendor.slug)
    return may_call_tool(
        *(caller.principal, caller.organization, found.vendor, found.tool.vendor_name),
        is_read_only=found.policy.read_only,
    )

"""Asks the caller of an earlier revision what a vendor asks in the middle of its call. docs/decisions/0110"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw

from proxy.cache.result_cache import VendorOutcome
from proxy.calls import call_audit
from proxy.calls.asking_request import AskingRequest
from proxy.calls.call_audit import OpenCall
from proxy.calls.decide import allowed_questions
from proxy.calls.rights_during_call import rights_now
from proxy.outcomes import Delivered, Denied, VendorError
from proxy.progress_relay import ProgressRelay
from proxy.protocol import questions
from proxy.protocol.modern import input_required
from proxy.protocol.modern.input_required import Answers, InputRequired
from proxy.protocol.questions import VendorQuestion
from proxy.request_context import RequestContext
from proxy.sessions.client_session import ClientSession
from proxy.vendors import fair_scheduler
from proxy.vendors.errors import CallEnded
from proxy.vendors.tool_request import ToolRequest

MAX_ROUNDS = 20  # of one call at a vendor of the modern revision
MAX_QUESTIONS_OF_CALL = 20  # further ones are refused
PAUSE_S = 1.0  # before a vendor that asked for nothing is asked again


@dataclass(slots=True)
class CallQuestions:
    """The questions of a vendor in one call, to a caller who has a session and reads the call's stream."""

    context: RequestContext
    session: ClientSession
    relay: ProgressRelay
    request: AskingRequest
    row: OpenCall
    capabilities: Mapping[str, Any]  # of the caller, as far as the vendor may rely on them
    asked: int = 0

    @property
    def mark(self) -> bytes:
        """Of the vendor's sessions for this caller: each was told the same capabilities."""
        return self.session.id + "|".join(self.capabilities).encode()

    def may_ask(self, count: int) -> bool:
        """Whether the call may ask `count` more."""
        return self.asked + count <= MAX_QUESTIONS_OF_CALL

    async def ask(self, question: VendorQuestion) -> questions.Reply | None:
        """None for a question that this caller is not asked. Raises: CallEnded; as `CallerCache.revalidated`."""
        is_known = questions.can_answer(question.method, question.mode, self.capabilities)
        if self.relay.is_closed or not is_known or not self.may_ask(1):
            return None
        self.asked += 1
        call_audit.note_question(self.row, question.method)
        if not await self._is_allowed_now(question):
            return None
        desk, principal = self.context.runtime.questions, self.context.caller.principal
        reply = await desk.ask(principal, self.session, self.request.vendor.slug, question, self.relay)
        return reply if await self._is_allowed_now(question) else None

    async def _is_allowed_now(self, question: VendorQuestion) -> bool:
        """Before the question and after its answer: both can be minutes late. Raises: as `ask`."""
        now = await rights_now(self.context, self.request)
        if isinstance(now, Denied):
            raise CallEnded(now)
        return questions.CAPABILITY_OF[question.method] in allowed_questions(now, self.request.vendor)


def asking(
    context: RequestContext,
    relay: ProgressRelay | None,
    request: AskingRequest,
    row: OpenCall,
    capabilities: Mapping[str, Any] | None,
) -> CallQuestions | None:
    """None for a caller without a session, without a stream, or without a capability that the vendor may rely on."""
    session = context.session
    if session is None or relay is None or not capabilities:
        return None
    return CallQuestions(context, session, relay, request, row, capabilities)


async def send_in_rounds(
    send: Callable[..., Awaitable[VendorOutcome]], tool: ToolRequest, params: dict[str, Any], own: CallQuestions
) -> VendorOutcome:
    """The outcome of `send`, which sends `params`. A vendor of the modern revision gets answers in further rounds."""
    asked: list[InputRequired] = []

    async def note(reply: InputRequired) -> Delivered | VendorError:
        asked.append(reply)
        return own.request.failed(input_required.unanswered(reply))

    outcome = await send(on_asked=note)
    for _ in range(MAX_ROUNDS):
        if not asked:
            break
        question = asked.pop()
        lacking = input_required.asked_in_vain(question, tool.capabilities)
        if lacking:
            return own.request.failed(input_required.in_vain(lacking, question))
        try:
            answers = await _ask_in_turn(own, question)
        except CallEnded as ended:
            return ended.denied
        if answers is None:
            return outcome
        tool = msgspec.structs.replace(tool, is_retry=True)
        input_required.answer_with(params, answers)
        outcome = await send(on_asked=note, tool=tool)
    return replace(outcome, is_personal=True) if own.asked and isinstance(outcome, Delivered) else outcome


async def _ask_in_turn(own: CallQuestions, asked: InputRequired) -> Answers | None:
    """The answers to all questions of a vendor of the modern revision; None if one was not answered, or if they are too
    many: then none is asked.

    Raises: CallEnded.
    """
    if not own.may_ask(len(asked.questions)):
        return None
    if not asked.questions:  # a vendor that puts off its work
        await asyncio.sleep(PAUSE_S)
    found = {}
    for key, raw in asked.questions.items():
        read, size_bytes = partial(questions.read, bytes(raw)), len(raw) * questions.READING_FACTOR
        question = await fair_scheduler.run_small_inline(own.context.caller.principal.org_id, read, size_bytes)
        reply = None if question is None else await own.ask(question)
        if reply is None or not reply.is_result:
            return None
        found[key] = Raw(reply.raw)
    return Answers(asked.state, found or None)

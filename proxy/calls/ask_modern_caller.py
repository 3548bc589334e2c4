"""Passes a vendor's question to a caller of the modern revision, and its answers to the vendor. docs/decisions/0107"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from proxy.caller import OrganizationAccess
from proxy.calls import call_audit, request_state
from proxy.calls.asking_request import AskingRequest
from proxy.calls.call_audit import OpenCall
from proxy.calls.decide import allowed_questions
from proxy.calls.rights_during_call import rights_now
from proxy.outcomes import Asked, BadArguments, Delivered, Denied, VendorError
from proxy.protocol.modern import input_required
from proxy.protocol.modern.input_required import Answers, InputRequired
from proxy.protocol.questions import CAPABILITY_OF
from proxy.request_context import RequestContext
from proxy.vendors import fair_scheduler


class ResultQuestions(msgspec.Struct, frozen=True):
    """The questions of one request. `capabilities`: of the caller; None if it cannot be asked by a result."""

    context: RequestContext
    request: AskingRequest
    capabilities: Mapping[str, Any] | None
    row: OpenCall

    async def pass_on(self, reply: InputRequired) -> Delivered | VendorError | Asked | Denied:
        """The question for a caller that can answer it; for others a failure that says what was asked. The rights are
        those of now. Raises: as `rights_now`."""
        lacking = input_required.asked_in_vain(reply, self.capabilities)
        if lacking:
            return self._in_vain(reply, lacking, self.context.caller.organization)
        methods = input_required.methods(reply)
        for method in methods:
            call_audit.note_question(self.row, method)
        now = await rights_now(self.context, self.request)
        if isinstance(now, Denied):
            return now
        allowed = allowed_questions(now, self.request.vendor)
        forbidden = [each for each in methods if CAPABILITY_OF[each] not in allowed]
        if forbidden:
            return self._in_vain(reply, forbidden, now)
        digest = await _digest(self.context, self.request)
        kinds = tuple(CAPABILITY_OF[each] for each in methods)
        state = request_state.sealed(self.context.caller.principal, self.request, digest, reply.state, kinds)
        return Asked(input_required.result(reply, state), len(reply.raw_result))

    def _in_vain(
        self, reply: InputRequired, methods: list[str], organization: OrganizationAccess
    ) -> Delivered | VendorError:
        allowed = allowed_questions(organization, self.request.vendor)
        undeclared = [each for each in methods if CAPABILITY_OF.get(each) in allowed]
        return self.request.failed(input_required.in_vain(methods, reply), undeclared)


async def with_own_state(context: RequestContext, request: AskingRequest, answers: Answers) -> Answers | BadArguments:
    """The answers of a retry with the vendor's own state. No answers, if one is of a kind that was forbidden meanwhile:
    the vendor asks again, and is told."""
    try:
        digest = await _digest(context, request)
        state = request_state.opened(context.caller.principal, request, digest, answers.state or "")
    except request_state.InvalidState:
        return BadArguments(input_required.REFUSED)
    allowed = allowed_questions(context.caller.organization, request.vendor)
    return Answers(state.vendor_state, answers.responses if allowed.issuperset(state.kinds) else None)


async def _digest(context: RequestContext, request: AskingRequest) -> bytes:
    work = partial(input_required.digest, request.arguments)
    return await fair_scheduler.run_small_inline(context.caller.principal.org_id, work, context.request_bytes)

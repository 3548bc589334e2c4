"""Pure: results that ask their caller for something, and the retries that bring the answers.

Spec: MCP 2026-07-28, basic/patterns/mrtr · docs/decisions/0107
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from proxy.protocol import jsonrpc, replies
from proxy.protocol.item_kinds import GET, READ
from proxy.protocol.modern.errors import MISSING_CAPABILITY
from proxy.protocol.questions import ELICITATION, can_answer, for_a_person

INPUT_REQUIRED: Final = "input_required"
MAY_ASK: Final = frozenset(("tools/call", GET, READ))  # the requests that may have such a result
MAX_STATE_BYTES: Final = 64 * 1024  # of a vendor's state; a longer one is no usable answer
MAX_SEALED_CHARACTERS: Final = 128 * 1024
MAX_QUESTIONS_OF_RESULT: Final = 100
MAX_ASKED_BYTES: Final = 512 * 1024  # of a whole result: it is read at once
MAX_NAMED: Final = 10  # capabilities in a text
# The same for every fault of a state, so that an attempt teaches nothing.
REFUSED: Final = "Invalid or expired requestState"
_TEXT_CHARACTERS: Final = 500

_encode = msgspec.json.Encoder().encode
_canonical = msgspec.json.Encoder(order="deterministic").encode


class InputRequired(replies.VendorResult, frozen=True):
    """A result that is an error for whoever cannot be asked. `questions`: JSON by the vendor's own key."""

    questions: dict[str, Raw] = {}
    state: str | None = None  # the vendor's own


class Answers(msgspec.Struct, frozen=True):
    """The parts of a retry: the state of the answer before, and the answers to its questions."""

    state: str | None
    responses: dict[str, Any] | None

    def as_params(self) -> dict[str, Any]:
        """The members of the params that the vendor gets. `state` is its own by then."""
        found = {"inputResponses": self.responses, "requestState": self.state}
        return {name: value for name, value in found.items() if value is not None}


class _Result(msgspec.Struct, rename="camel"):
    input_requests: dict[str, Raw] = {}
    request_state: str | None = None


class _Params(msgspec.Struct):
    mode: str = "form"
    message: str = ""


class _Question(msgspec.Struct):
    method: str
    params: _Params = msgspec.field(default_factory=_Params)


class _Needs(msgspec.Struct, rename="camel"):
    required_capabilities: dict[str, Any] = {}


class _Error(msgspec.Struct):
    data: _Needs = msgspec.field(default_factory=_Needs)


_results = msgspec.json.Decoder(_Result)
_members = msgspec.json.Decoder(dict[str, Raw])
_questions = msgspec.json.Decoder(_Question)
_errors = msgspec.json.Decoder(_Error)


def read(result: replies.VendorResult) -> InputRequired:
    """Raises: BadVendorReply."""
    if len(result.raw_result) > MAX_ASKED_BYTES:
        raise replies.BadVendorReply("it asks for too much")
    try:
        found = _results.decode(result.raw_result)
        if len(found.input_requests) > MAX_QUESTIONS_OF_RESULT:
            raise replies.BadVendorReply("it asks for too much")
        asked = {key: _for_caller(each) for key, each in found.input_requests.items()}
    except (msgspec.DecodeError, RecursionError):
        raise replies.BadVendorReply("it asks for something in a way that cannot be read") from None
    if not found.input_requests and found.request_state is None:
        raise replies.BadVendorReply("it asks for nothing")
    if len((found.request_state or "").encode()) > MAX_STATE_BYTES:
        raise replies.BadVendorReply("it asks for too much")
    return InputRequired(result.id, result.raw_result, is_error=True, questions=asked, state=found.request_state)


def _for_caller(question: Raw) -> Raw:
    """Raises: BadVendorReply; DecodeError; RecursionError."""
    members = _members.decode(question)
    if _questions.decode(question).method != ELICITATION or "params" not in members:
        return question
    params = _members.decode(members["params"])
    shown = for_a_person(params)
    if shown is None:
        raise replies.BadVendorReply("it asks its user to open an address that may mislead")
    return question if shown is params else Raw(_encode({**members, "params": shown}))


def asked_in_vain(asked: InputRequired, capabilities: Mapping[str, Any] | None) -> list[str]:
    """The methods of the questions that a caller with these capabilities cannot answer. `capabilities`: None for a
    caller that cannot be asked at all."""
    if capabilities is None:
        return methods(asked) or [INPUT_REQUIRED]
    return sorted(
        {found.method for found in map(_questions.decode, asked.questions.values()) if _lacks(found, capabilities)}
    )


def _lacks(question: _Question, capabilities: Mapping[str, Any]) -> bool:
    return not can_answer(question.method, question.params.mode, capabilities)


def result(asked: InputRequired, state: str) -> dict[str, Any]:
    """The members of the caller's result, with the state that it shall bring back."""
    members: dict[str, Any] = {"requestState": state}
    return {**members, "inputRequests": asked.questions} if asked.questions else members


def in_vain(methods: list[str], asked: InputRequired | None = None) -> str:
    """The words about questions to a client that cannot answer, for a model to tell its user."""
    said = [] if asked is None else [_questions.decode(each).params.message for each in asked.questions.values()]
    words = " ".join(f"“{each[:_TEXT_CHARACTERS]}”" for each in said if each)
    return (
        f"The vendor has a question for its user in the middle of the call"
        f" ({', '.join(methods)}){words and f': {words}'}. This client can’t be asked through the gateway, so the call"
        " ended. Use a client that declares this capability; the organization must let the vendor ask."
    )


def unanswered(asked: InputRequired) -> str:
    """The words about questions that the client did not answer."""
    return f"The vendor asked its user in the middle of the call ({', '.join(methods(asked))}). No answer came."


def failed_result(text: str) -> bytes:
    """The result of a tool that asked in vain."""
    return _encode({"content": [{"type": "text", "text": text}], "isError": True})


def methods(asked: InputRequired) -> list[str]:
    """The methods of the questions, each once."""
    return sorted({_questions.decode(each).method for each in asked.questions.values()})


def answer_with(params: dict[str, Any], answers: Answers) -> None:
    """Put the answers of this round in place of those of the one before."""
    for name in ("inputResponses", "requestState"):
        params.pop(name, None)
    params |= answers.as_params()


def capabilities_needed(error: replies.RpcError) -> list[str] | None:
    """The capabilities without which a vendor refused a call; None for other errors."""
    if error.code != MISSING_CAPABILITY:
        return None
    try:
        needed = _errors.decode(error.raw_error).data.required_capabilities
    except (msgspec.DecodeError, RecursionError):
        needed = {}
    return [each[:_TEXT_CHARACTERS] for each in sorted(needed)[:MAX_NAMED]] or ["a capability"]


def read_answers(params: Mapping[str, Any]) -> Answers | jsonrpc.Invalid | None:
    """The parts of a retry; None for a first call. Answers without a state are none: every question has one."""
    if "requestState" not in params:
        return None
    state, responses = params["requestState"], params.get("inputResponses")
    if not isinstance(state, str) or not isinstance(responses, dict | None):
        return jsonrpc.Invalid(None, jsonrpc.INVALID_PARAMS, REFUSED)
    return Answers(state, responses)


def digest(arguments: Mapping[str, Any]) -> bytes:
    """Equal for equal arguments, whatever the order of their members."""
    return hashlib.sha256(_canonical(arguments)).digest()

"""Questions of vendors that would take long to read, and refusals that name without end."""

from __future__ import annotations

import msgspec
import pytest

from proxy.protocol.modern import input_required
from proxy.protocol.modern.errors import MISSING_CAPABILITY
from proxy.protocol.modern.input_required import MAX_ASKED_BYTES, MAX_NAMED, MAX_QUESTIONS_OF_RESULT
from proxy.protocol.replies import BadVendorReply, RpcError, VendorResult

QUESTION = {"method": "roots/list", "params": {}}


def result(questions: int, *, padding: str = "") -> VendorResult:
    asked = {str(number): QUESTION for number in range(questions)}
    return VendorResult(7, msgspec.json.encode({"inputRequests": asked, "padding": padding}), False)


def test_questions_up_to_the_bounds_are_read() -> None:
    assert len(input_required.read(result(MAX_QUESTIONS_OF_RESULT)).questions) == MAX_QUESTIONS_OF_RESULT


@pytest.mark.parametrize("asked", [result(MAX_QUESTIONS_OF_RESULT + 1), result(1, padding="x" * MAX_ASKED_BYTES)])
def test_more_is_refused(asked: VendorResult) -> None:
    with pytest.raises(BadVendorReply, match="too much"):
        input_required.read(asked)


def test_a_refusal_names_a_few_capabilities() -> None:
    needed = {f"{number:03}" + "x" * 1_000: {} for number in range(200)}
    raw = msgspec.json.encode({"data": {"requiredCapabilities": needed}})
    named = input_required.capabilities_needed(RpcError(7, MISSING_CAPABILITY, "no", raw))
    assert named is not None
    assert (len(named), max(map(len, named))) == (MAX_NAMED, 500)
    assert input_required.capabilities_needed(RpcError(7, -32000, "no", raw)) is None


def test_a_person_reads_no_hidden_characters_and_opens_no_misleading_address() -> None:
    def asked(**params: str) -> VendorResult:
        question = {"method": "elicitation/create", "params": params}
        return VendorResult(7, msgspec.json.encode({"inputRequests": {"a": question, "b": QUESTION}}), False)

    shown = input_required.read(asked(message="Se\u202end?")).questions
    assert msgspec.json.decode(shown["a"]) == {"method": "elicitation/create", "params": {"message": "Send?"}}
    assert msgspec.json.decode(shown["b"]) == QUESTION
    with pytest.raises(BadVendorReply, match="may mislead"):
        input_required.read(asked(mode="url", message="Sign in", url="https://bank.example@evil.example/"))

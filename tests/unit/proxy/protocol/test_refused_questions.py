"""Answers that say what their vendor asked for in vain."""

from __future__ import annotations

import json

from proxy.protocol import refused_questions
from proxy.protocol.replies import RpcError, VendorResult


def test_each_method_is_noted_once_and_few_of_them() -> None:
    refused: list[str] = []
    for method in ["a", "a", *map(str, range(10)), "x" * 1000]:
        refused_questions.noted(refused, method)
    assert refused == ["a", "0", "1", "2", "3"]
    refused.clear()
    refused_questions.noted(refused, "x" * 1000)
    assert len(refused[0]) == 64


def test_a_result_says_it_in_words_and_for_programs() -> None:
    raw = b'{"content":[{"type":"text","text":"half"}],"structuredContent":{"n":1.0},"_meta":{"own":1}}'
    told = refused_questions.told(VendorResult(7, raw, False), ["elicitation/create", "roots/list"])
    assert isinstance(told, VendorResult)
    found = json.loads(told.raw_result)
    assert (told.id, told.is_error, found["structuredContent"]) == (7, False, {"n": 1.0})
    assert found["_meta"] == {"own": 1, "gateway/refused": ["elicitation/create", "roots/list"]}
    assert found["content"][0] == {"type": "text", "text": "half"}
    assert "asked for elicitation/create, roots/list in the middle of this call" in found["content"][1]["text"]


def test_an_error_says_it_too() -> None:
    error = RpcError(7, -32603, "Failed.", b'{"code":-32603,"message":"Failed.","data":{"a":1}}')
    told = refused_questions.told(error, ["sampling/createMessage"])
    assert isinstance(told, RpcError)
    found = json.loads(told.raw_error)
    assert (found["code"], found["data"]) == (-32603, {"a": 1})
    assert found["message"] == told.message
    assert told.message.startswith("Failed. The vendor asked for sampling/createMessage")


def test_what_cannot_be_read_stays_as_it_is() -> None:
    result = VendorResult(7, b'{"content":"none"}', False)
    assert refused_questions.told(result, ["roots/list"]) is result


def test_a_long_result_has_them_for_programs_alone() -> None:
    raw = b'{"content":["%b"]}' % (b"x" * refused_questions.MAX_WORDED_BYTES)
    told = refused_questions.told(VendorResult(7, raw, False), ["roots/list"])
    assert isinstance(told, VendorResult)
    assert told.raw_result == raw[:-1] + b',"_meta":{"gateway/refused":["roots/list"]}}'

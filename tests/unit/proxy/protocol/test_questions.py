from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.protocol import questions
from proxy.protocol.jsonrpc import Response
from proxy.protocol.questions import MAX_ANSWER_BYTES, MAX_QUESTION_BYTES, Reply


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ({}, {}),
        (None, {}),
        ([], {}),
        ({"tools": {}, "experimental": {"x": {}}}, {}),
        ({"elicitation": {}}, {"elicitation": {}}),
        ({"elicitation": True, "sampling": []}, {}),
        ({"elicitation": {"form": {"x": 1}, "url": True, "odd": {}}}, {"elicitation": {"form": {}}}),
        (
            {"sampling": {"tools": {}, "context": {}}, "roots": {"listChanged": True}},
            {"sampling": {"tools": {}, "context": {}}, "roots": {}},
        ),
    ],
)
def test_what_a_vendor_may_rely_on(said: object, known: dict[str, Any]) -> None:
    assert questions.declared(said) == known


@pytest.mark.parametrize(
    ("method", "mode", "can", "answers"),
    [
        ("elicitation/create", "form", {"elicitation": {}}, True),
        ("elicitation/create", "url", {"elicitation": {}}, False),
        ("elicitation/create", "url", {"elicitation": {"url": {}}}, True),
        ("elicitation/create", "form", {"elicitation": {"url": {}}}, False),
        ("sampling/createMessage", "", {"elicitation": {}}, False),
        ("roots/list", "", {"roots": {}}, True),
        ("tools/call", "", {"roots": {}}, False),
    ],
)
def test_what_a_client_can_answer(method: str, mode: str, can: dict[str, Any], answers: bool) -> None:
    assert questions.can_answer(method, mode, can) is answers


@pytest.mark.parametrize(
    ("address", "is_passed_on"),
    [
        ("https://vendor.example/consent?x=1#y", True),
        ("http://10.0.0.7:8080/consent", True),
        ("https://xn--bcher-kva.example/", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("https:///consent", False),
        ("https://bank.example@evil.example/", False),
        ("https://bank.example:x@evil.example/", False),
        ("https://bank.example\\@evil.example/", False),
        ("https://b\u00e4nk.example/", False),
        ("https://bank.example/\u202egpj.exe", False),
        ("https://bank.example /", False),
        ("https://[bank.example/", False),
        ("//bank.example/", False),
        ("", False),
        (7, False),
        (None, False),
    ],
)
def test_addresses_that_a_person_may_be_asked_to_open(address: object, is_passed_on: bool) -> None:
    params = {"mode": "url", "message": "Sign in", "url": address, "elicitationId": "1"}
    raw = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}).encode()
    assert (questions.read(raw) is not None) is is_passed_on


def test_a_person_reads_no_hidden_characters() -> None:
    schema = {"type": "object", "properties": {"a": {"title": "Na\u200bme", "enum": ["x\u202e"]}}}
    params = {"message": "Se\U000e0041nd \u00fc?", "requestedSchema": schema}
    for raw in (json.dumps({"method": "elicitation/create", "params": params}, ensure_ascii=flag) for flag in (0, 1)):
        found = questions.read(raw.encode())
        assert found is not None
        shown = {name: json.loads(bytes(each)) for name, each in found.params.items()}
        assert shown["message"] == "Send \u00fc?"
        assert shown["requestedSchema"]["properties"] == {"a": {"title": "Name", "enum": ["x"]}}


def test_a_question_loses_what_is_of_the_vendors_own_connection() -> None:
    meta = {"progressToken": 1, "io.modelcontextprotocol/x": 1, "vendor.example/y": 2}
    raw = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "roots/list", "params": {"a": [1], "_meta": meta}}).encode()
    found = questions.read(raw)
    assert found is not None
    assert {name: json.loads(bytes(each)) for name, each in found.params.items()} == {
        "a": [1],
        "_meta": {"vendor.example/y": 2},
    }


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b'{"method": 1}',
        b'{"method": "roots/list", "params": []}',
        b'{"method": "roots/list", "params": {"_meta": 7}}',
        b'{"method": "elicitation/create", "params": {"mode": 7}}',
        b'{"method": "roots/list", "params": {"a": "%b"}}' % (b"x" * MAX_QUESTION_BYTES),
    ],
)
def test_questions_that_cannot_be_passed_on(raw: bytes) -> None:
    assert questions.read(raw) is None


def test_an_answer_goes_on_under_the_vendors_own_id() -> None:
    reply = questions.reply_of(Response("ours", {"action": "accept"}))
    assert reply == Reply("result", b'{"action":"accept"}')
    assert reply is not None
    assert json.loads(reply.message(7)) == {"jsonrpc": "2.0", "id": 7, "result": {"action": "accept"}}
    refusal = questions.reply_of(Response("ours", None, {"code": -1, "message": "no"}))
    assert refusal is not None
    assert json.loads(refusal.message("q")) == {"jsonrpc": "2.0", "id": "q", "error": {"code": -1, "message": "no"}}


@pytest.mark.parametrize(
    "answer",
    [
        Response("q"),
        Response("q", []),
        Response("q", "yes"),
        Response("q", {}, {"code": 1, "message": "x"}),
        Response("q", None, {"code": "1", "message": "x"}),
        Response("q", None, {"code": True, "message": "x"}),
        Response("q", None, {"code": 1}),
        Response("q", {"a": "x" * MAX_ANSWER_BYTES}),
    ],
)
def test_answers_that_are_none(answer: Response) -> None:
    assert questions.reply_of(answer) is None

from __future__ import annotations

import json

import pytest

from audit.shipping.platforms.exchange import (
    BatchRefused,
    Delivered,
    DestinationRefused,
    Outgoing,
    RetryLater,
    Target,
    Verdict,
)
from audit.shipping.platforms.splunk import FIELDS, Splunk
from tests.unit.audit.shipping.samples import BATCH, CALL_ID, CHANGE_ID, NOW, ORG, PERSON, a_call, a_change, answer

HOST = "https://splunk.example"
TOKEN = "12345678-abcd-4abc-8abc-1234567890ab"
BODY = (
    '{"time":1795428930.123,"source":"mcp-gateway","sourcetype":"mcp_gateway:tool_call","event":{'
    f'"event_id":"{CALL_ID}","type":"tool_call","vendor_product":"mcp-gateway","action":"allowed","org_id":"{ORG}",'
    f'"user_id":"{PERSON}","user":"Ana Ek","app":"acme","tool":"list_devices","call_source":"mcp","status":"error",'
    '"error_code":"vendor_timeout","response_time":1500,"vendor_ms":1400,"credential_scope":"team",'
    '"credential_name":"Blue","cached":false,"client_id":"client-1","client_name":"Editor","src":"203.0.113.7",'
    '"request_id":"req-1","bytes_in":120,"bytes_out":4500,"count":1,"kind":"tool"}}\n'
    '{"time":1795428931.0,"source":"mcp-gateway","sourcetype":"mcp_gateway:admin_change","event":{'
    f'"event_id":"{CHANGE_ID}","type":"admin_change","vendor_product":"mcp-gateway","action":"updated",'
    f'"object_category":"member","org_id":"{ORG}","event_type":"member.role_changed","user_id":"{PERSON}",'
    '"user":"Ana Ek","object_id":"33333333-3333-4333-8333-333333333333","object":"Bo Li",'
    '"metadata":{"role":"admin","was":"member"},"src":"2001:db8::7","request_id":"req-2"}}\n'
)


def outgoing(url: str = HOST) -> Outgoing:
    return Splunk().request(Target(url, {"token": TOKEN}), BATCH, now=NOW, token="")


def test_the_body_is_an_envelope_for_each_record() -> None:
    sent = outgoing()
    assert sent.body.decode() == BODY
    assert sent.headers == {"Content-Type": "application/json", "Authorization": f"Splunk {TOKEN}"}
    assert sent.may_compress
    assert TOKEN not in repr(sent)


def test_the_table_has_every_field_and_no_other() -> None:
    assert {*a_call(item="test://x").fields, *a_change().fields} == set(FIELDS)


@pytest.mark.parametrize(("status", "action"), [("success", "allowed"), ("unknown", "allowed"), ("denied", "blocked")])
def test_a_refused_call_is_blocked(status: str, action: str) -> None:
    sent = Splunk().request(Target(HOST, {"token": TOKEN}), [a_call(status=status)], now=NOW, token="")
    assert json.loads(sent.body)["event"]["action"] == action


@pytest.mark.parametrize(
    ("event_type", "action", "category"),
    [
        ("team.created", "created", "team"),
        ("agent_key.revoked", "deleted", "agent_key"),
        ("oauth.x", "updated", "oauth"),
    ],
)
def test_a_change_has_the_words_of_the_change_model(event_type: str, action: str, category: str) -> None:
    sent = Splunk().request(Target(HOST, {"token": TOKEN}), [a_change(event_type=event_type)], now=NOW, token="")
    event = json.loads(sent.body)["event"]
    assert (event["action"], event["object_category"]) == (action, category)


@pytest.mark.parametrize(
    "body",
    [
        '{"text":"Success","code":0}',
        '{"text":"Success","code":0,"ackId":3}',
        '{"text":"HEC queue is approaching its capacity limit","code":24}',
        '{"text":"HEC ACK queue is approaching its capacity limit","code":25}',
    ],
)
def test_a_success_says_so(body: str) -> None:
    assert Splunk().read(answer(200, body), BATCH) == Delivered()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, "", RetryLater),
        (200, "{}", RetryLater),
        (200, '{"text":"Invalid token","code":4}', RetryLater),
        (400, '{"text":"No data","code":5}', BatchRefused),
        (400, '{"text":"Invalid data format","code":6,"invalid-event-number":1}', BatchRefused),
        (400, '{"text":"Event field is required","code":12,"invalid-event-number":1}', BatchRefused),
        (400, '{"text":"Event field cannot be blank","code":13,"invalid-event-number":0}', BatchRefused),
        (400, '{"text":"Error in handling indexed fields","code":15,"invalid-event-number":0}', BatchRefused),
        (400, '{"text":"Incorrect index","code":7,"invalid-event-number":0}', DestinationRefused),
        (400, '{"text":"Data channel is missing","code":10}', DestinationRefused),
        (400, '{"text":"Invalid data channel","code":11}', DestinationRefused),
        (403, '{"text":"Token disabled","code":1}', DestinationRefused),
        (401, '{"text":"Token is required","code":2}', DestinationRefused),
        (401, '{"text":"Invalid authorization","code":3}', DestinationRefused),
        (403, '{"text":"Invalid token","code":4}', DestinationRefused),
        (429, '{"text":"HEC queue is at capacity","code":26}', RetryLater),
        (500, '{"text":"Internal server error","code":8}', RetryLater),
        (503, '{"text":"Server is busy","code":9}', RetryLater),
        (503, '{"text":"Server is shutting down","code":23}', RetryLater),
    ],
)
def test_other_answers(status: int, body: str, kind: type[Verdict]) -> None:
    assert isinstance(Splunk().read(answer(status, body), BATCH), kind)


def test_the_reason_is_the_collectors_own() -> None:
    body = '{"text":"Invalid data format","code":6,"invalid-event-number":1}'
    assert Splunk().read(answer(400, body), BATCH) == BatchRefused(f"400: {body}")


def test_a_token_with_acknowledgment_is_explained() -> None:
    verdict = Splunk().read(answer(400, '{"text":"Data channel is missing","code":10}'), BATCH)
    assert isinstance(verdict, DestinationRefused)
    assert verdict.reason.endswith("turn off indexer acknowledgment for this token")

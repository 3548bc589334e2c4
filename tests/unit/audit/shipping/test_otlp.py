from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from audit.shipping.platforms.exchange import (
    BatchRefused,
    Delivered,
    DestinationRefused,
    InvalidDestination,
    RetryLater,
    Verdict,
)
from audit.shipping.platforms.otlp import Otlp
from audit.shipping.platforms.otlp_values import any_value
from tests.unit.audit.shipping.samples import BATCH, CALL, CHANGE, NOW, ORG, PERSON, a_change, answer, target

PLATFORM = Otlp()
URL = "https://otlp.example.com"


def text(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def number(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"intValue": value}}


def test_the_request() -> None:
    place = target(URL, headers="Authorization: Bearer key-1\nX-Scope-OrgID: team")
    sent = PLATFORM.request(place, BATCH, now=NOW, token="")
    assert sent.url == "https://otlp.example.com/v1/logs"
    assert sent.headers == {
        "Authorization": "Bearer key-1",
        "X-Scope-OrgID": "team",
        "Content-Type": "application/json",
    }
    assert sent.may_compress
    assert "key-1" not in repr((place, sent))
    resource_logs = json.loads(sent.body)["resourceLogs"]
    assert [(each["resource"], each["scopeLogs"][0]["scope"], len(each["scopeLogs"])) for each in resource_logs] == [
        ({"attributes": [text("service.name", "mcp-gateway")]}, {"name": "mcp_gateway.audit"}, 1)
    ]


def records(*events: Any) -> list[dict[str, Any]]:
    body = json.loads(PLATFORM.request(target(URL), events, now=NOW, token="").body)
    return body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]


def test_a_call() -> None:
    assert records(CALL) == [
        {
            "timeUnixNano": "1795428930123000000",
            "observedTimeUnixNano": "1795428930123000000",
            "severityNumber": 17,
            "severityText": "ERROR",
            "eventName": "mcp_gateway.tool_call",
            "body": {"stringValue": "Ana Ek called list_devices of acme: error vendor_timeout"},
            "attributes": [
                text("log.record.uid", CALL.id),
                text("mcp_gateway.org.id", str(ORG)),
                text("user.id", PERSON),
                text("user.name", "Ana Ek"),
                text("mcp_gateway.vendor", "acme"),
                text("gen_ai.tool.name", "list_devices"),
                text("mcp_gateway.source", "mcp"),
                text("mcp_gateway.status", "error"),
                text("error.type", "vendor_timeout"),
                number("mcp_gateway.duration_ms", "1500"),
                number("mcp_gateway.vendor.duration_ms", "1400"),
                text("mcp_gateway.credential.scope", "team"),
                text("mcp_gateway.credential.name", "Blue"),
                {"key": "mcp_gateway.cached", "value": {"boolValue": False}},
                text("mcp_gateway.client.id", "client-1"),
                text("mcp_gateway.client.name", "Editor"),
                text("client.address", "203.0.113.7"),
                text("mcp_gateway.request.id", "req-1"),
                number("mcp_gateway.request.size", "120"),
                number("mcp_gateway.response.size", "4500"),
                number("mcp_gateway.count", "1"),
                text("mcp_gateway.kind", "tool"),
                text("gen_ai.operation.name", "execute_tool"),
            ],
        }
    ]


def test_a_change() -> None:
    facts = {"from": "member", "to": "admin", "teams": ["core", None], "share": 0.5, "silent": True}
    (record,) = records(a_change(metadata=facts))
    assert (record["severityNumber"], record["severityText"], record["eventName"], record["timeUnixNano"]) == (
        9,
        "INFO",
        "mcp_gateway.admin_change",
        "1795428931000000000",
    )
    metadata = [
        text("from", "member"),
        text("to", "admin"),
        {"key": "teams", "value": {"arrayValue": {"values": [{"stringValue": "core"}, {"stringValue": ""}]}}},
        {"key": "share", "value": {"doubleValue": 0.5}},
        {"key": "silent", "value": {"boolValue": True}},
    ]
    assert record["attributes"] == [
        text("log.record.uid", CHANGE.id),
        text("mcp_gateway.org.id", str(ORG)),
        text("mcp_gateway.admin.event_type", "member.role_changed"),
        text("user.id", PERSON),
        text("user.name", "Ana Ek"),
        text("mcp_gateway.target.id", "33333333-3333-4333-8333-333333333333"),
        text("mcp_gateway.target.name", "Bo Li"),
        {"key": "mcp_gateway.metadata", "value": {"kvlistValue": {"values": metadata}}},
        text("client.address", "2001:db8::7"),
        text("mcp_gateway.request.id", "req-2"),
    ]


def test_attributes_of_one_record_have_different_names_and_a_new_field_travels() -> None:
    for event in (CALL, CHANGE):
        (record,) = records(replace(event, fields={**event.fields, "later": "x"}))
        names = [attribute["key"] for attribute in record["attributes"]]
        assert len(names) == len(set(names))
        assert "mcp_gateway.later" in names


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (None, {"stringValue": ""}),
        (True, {"boolValue": True}),
        (2**63 - 1, {"intValue": "9223372036854775807"}),
        (2**63, {"stringValue": "9223372036854775808"}),
        (float("inf"), {"stringValue": "inf"}),
        ([], {"arrayValue": {"values": []}}),
        ({}, {"kvlistValue": {"values": []}}),
        ("", {"stringValue": ""}),
    ],
)
def test_values(value: object, encoded: dict[str, Any]) -> None:
    assert any_value(value) == encoded


def test_headers_are_checked() -> None:
    PLATFORM.check(URL, {})
    PLATFORM.check(URL, {"headers": "api-key=abc"})
    with pytest.raises(InvalidDestination) as refusal:
        PLATFORM.check(URL, {"headers": "Host: evil.example"})
    assert refusal.value.code == "config_missing"
    assert refusal.value.fields == {"headers": "The header Host is set by the gateway."}


@pytest.mark.parametrize(
    ("status", "body", "verdict"),
    [
        (200, "{}", Delivered()),
        (200, "", Delivered()),
        (200, b"\x0a\x00", Delivered()),
        (200, '{"partialSuccess":{}}', Delivered()),
        (200, '{"partialSuccess":{"rejectedLogRecords":"0","errorMessage":"slow, but kept"}}', Delivered()),
        (200, '{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":"old"}}', Delivered(unnamed=("old",))),
        (200, '{"partialSuccess":{"rejectedLogRecords":2,"errorMessage":"no"}}', Delivered(unnamed=("no", "no"))),
        (200, '{"partialSuccess":{"rejectedLogRecords":9}}', Delivered(unnamed=("rejected", "rejected"))),
        (200, '{"partialSuccess":{"rejectedLogRecords":-4}}', Delivered()),
        (200, '{"partialSuccess":{"rejectedLogRecords":"many"}}', Delivered()),
        (200, '{"partialSuccess":[]}', Delivered()),
        (200, "[]", Delivered()),
        (200, b"\xff\xfe", Delivered()),
        (
            200,
            " <html>Sign in",
            DestinationRefused("200: a web page answers at this address instead of an OTLP receiver"),
        ),
        (400, '{"message":"bad"}', BatchRefused('400: {"message":"bad"}')),
        (413, "", BatchRefused("413, without a text")),
        (401, "", DestinationRefused("401, without a text")),
        (404, "", DestinationRefused("404, without a text")),
        (408, "", DestinationRefused("408, without a text")),
        (429, "", RetryLater("429, without a text", 5.0)),
        (500, "", DestinationRefused("500, without a text")),
        (501, "", DestinationRefused("501, without a text")),
        (502, "", RetryLater("502, without a text", 5.0)),
        (503, "", RetryLater("503, without a text", 5.0)),
        (504, "", RetryLater("504, without a text", 5.0)),
        (307, "", DestinationRefused("307: the address redirects, which is not followed")),
    ],
)
def test_answers(status: int, body: bytes | str, verdict: Verdict) -> None:
    assert PLATFORM.read(answer(status, body, {"Retry-After": "5"}), BATCH) == verdict


def test_a_long_reason_is_cut() -> None:
    body = json.dumps({"partialSuccess": {"rejectedLogRecords": 2, "errorMessage": "x" * 5000}})
    verdict = PLATFORM.read(answer(200, body), BATCH)
    assert isinstance(verdict, Delivered)
    assert verdict.unnamed[0] == "x" * 200

from __future__ import annotations

import json

import pytest

from audit.shipping.platforms.exchange import (
    BatchRefused,
    Delivered,
    DestinationRefused,
    InvalidDestination,
    Outgoing,
    RetryLater,
    Target,
    Verdict,
)
from audit.shipping.platforms.logscale import LogScale
from tests.unit.audit.shipping.answers import answer
from tests.unit.audit.shipping.sample_events import BATCH, CALL_ID, CHANGE_ID, NOW, ORG, PERSON

HOST = "https://cloud.community.humio.com"
TOKEN = "0a1b2c3d-ingest"
BODY = (
    '{"time":1795428930.123,"source":"mcp-gateway","event":{"ecs":{"version":"8.11.0"},"event":{'
    f'"id":"{CALL_ID}","kind":"event","module":"mcp_gateway","dataset":"mcp_gateway.tool_call","category":["api"],'
    '"type":["access","allowed"],"action":"tool_call","outcome":"failure","duration":1500000000},'
    f'"organization":{{"id":"{ORG}"}},"user":{{"id":"{PERSON}","name":"Ana Ek"}},"mcp_gateway":{{"vendor":"acme",'
    '"tool":"list_devices","source":"mcp","status":"error","vendor_ms":1400,"credential":{"scope":"team",'
    '"name":"Blue"},"cached":false,"client":{"id":"client-1","name":"Editor"},"count":1},'
    '"error":{"code":"vendor_timeout"},"source":{"address":"203.0.113.7","ip":"203.0.113.7"},'
    '"http":{"request":{"id":"req-1","body":{"bytes":120}},"response":{"body":{"bytes":4500}}}}}\n'
    '{"time":1795428931.0,"source":"mcp-gateway","event":{"ecs":{"version":"8.11.0"},"event":{'
    f'"id":"{CHANGE_ID}","kind":"event","module":"mcp_gateway","dataset":"mcp_gateway.admin_change",'
    '"category":["iam"],"type":["change"],"action":"member.role_changed"},'
    f'"organization":{{"id":"{ORG}"}},"user":{{"id":"{PERSON}","name":"Ana Ek"}},"mcp_gateway":{{"target":{{'
    '"id":"33333333-3333-4333-8333-333333333333","name":"Bo Li"},'
    r'"metadata":"{\"role\":\"admin\",\"was\":\"member\"}"},'
    '"source":{"address":"2001:db8::7","ip":"2001:db8::7"},"http":{"request":{"id":"req-2"}}}}\n'
)


def outgoing(url: str = HOST) -> Outgoing:
    return LogScale().request(Target(url, {"token": TOKEN}), BATCH, now=NOW, token="")


def test_the_body_is_an_envelope_for_each_record() -> None:
    sent = outgoing()
    assert sent.body.decode() == BODY
    assert sent.headers == {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
    assert sent.may_compress
    assert TOKEN not in repr(sent)


def test_no_parser_is_chosen_for_the_token() -> None:
    assert all("sourcetype" not in json.loads(line) for line in outgoing().body.splitlines())


@pytest.mark.parametrize(
    ("url", "address"),
    [
        (HOST, f"{HOST}/api/v1/ingest/hec"),
        (f"{HOST}/", f"{HOST}/api/v1/ingest/hec"),
        (f"{HOST}:8088/services/collector", f"{HOST}:8088/services/collector"),
    ],
)
def test_the_path_is_added_to_a_base_address(url: str, address: str) -> None:
    assert outgoing(url).url == address


def test_a_usable_token_passes() -> None:
    LogScale().check(HOST, {"token": TOKEN})


@pytest.mark.parametrize("token", ["a\nb", "ą", "a "])
def test_a_token_that_is_no_header_is_refused(token: str) -> None:
    with pytest.raises(InvalidDestination) as refused:
        LogScale().check(HOST, {"token": token})
    assert (refused.value.code, [*refused.value.fields]) == ("config_missing", ["token"])


@pytest.mark.parametrize("body", ["", "{}", '{"text":"Success","code":0}'])
def test_the_status_is_the_success(body: str) -> None:
    assert LogScale().read(answer(200, body), BATCH) == Delivered()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, "\n<!doctype html><title>Sign in</title>", RetryLater),
        (308, "", DestinationRefused),
        (400, "Could not parse JSON", BatchRefused),
        (401, "The token is not valid", DestinationRefused),
        (403, "", DestinationRefused),
        (404, "", DestinationRefused),
        (413, "", BatchRefused),
        (429, "", RetryLater),
        (500, "", RetryLater),
        (503, "Ingest parsing exceeded the acceptable amount of time", RetryLater),
    ],
)
def test_other_answers(status: int, body: str, kind: type[Verdict]) -> None:
    assert isinstance(LogScale().read(answer(status, body), BATCH), kind)


def test_a_wish_to_wait_is_passed_on() -> None:
    assert LogScale().read(answer(503, "busy", retry_after="60"), BATCH) == RetryLater("503: busy", 60.0)

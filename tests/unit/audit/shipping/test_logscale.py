from __future__ import annotations

import json

import pytest

from audit.shipping.platforms.exchange import BatchRefused, Delivered, Outgoing, Target
from audit.shipping.platforms.logscale import LogScale
from tests.unit.audit.shipping.samples import BATCH, CALL_ID, CHANGE_ID, NOW, ORG, PERSON, answer

HOST = "https://cloud.community.humio.com"
TOKEN = "0a1b2c3d-ingest"
BODY = (
    '{"time":1795428930.123,"source":"mcp-gateway","event":{"ecs":{"version":"8.11.0"},"event":{'
    f'"id":"{CALL_ID}","kind":"event","module":"mcp_gateway","dataset":"mcp_gateway.tool_call","category":["api"],'
    '"type":["access","allowed"],"action":"tool_call","outcome":"failure","duration":1500000000},'
    f'"organization":{{"id":"{ORG}"}},"user":{{"id":"{PERSON}","name":"Ana Ek"}},"mcp_gateway":{{"vendor":"acme",'
    '"tool":"list_devices","source":"mcp","status":"error","vendor_ms":1400,"credential":{"scope":"team",'
    '"name":"Blue"},"cached":false,"client":{"id":"client-1","name":"Editor"},"count":1,"kind":"tool"},'
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


@pytest.mark.parametrize("body", ["", "{}", '{"text":"Success","code":0}'])
def test_the_status_is_the_success(body: str) -> None:
    assert LogScale().read(answer(200, body), BATCH) == Delivered()


def test_a_body_that_could_not_be_read_is_sent_in_parts() -> None:
    assert isinstance(LogScale().read(answer(400, "Could not parse JSON"), BATCH), BatchRefused)

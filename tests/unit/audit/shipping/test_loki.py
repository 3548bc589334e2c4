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
from audit.shipping.platforms.loki import Loki
from tests.unit.audit.shipping.samples import BATCH, CALL_ID, CHANGE_ID, NOW, ORG, PERSON, a_call, answer

HOST = "https://loki.example"
CALL_LINE = (
    f'{{"id":"{CALL_ID}","type":"tool_call","timestamp":"2026-11-23T10:15:30.123Z","orgId":"{ORG}",'
    f'"userId":"{PERSON}","userLabel":"Ana Ek","vendor":"acme","tool":"list_devices","source":"mcp","status":"error",'
    '"errorCode":"vendor_timeout","durationMs":1500,"vendorMs":1400,"credentialScope":"team","credentialName":"Blue",'
    '"cached":false,"clientId":"client-1","clientName":"Editor","ipAddress":"203.0.113.7","requestId":"req-1",'
    '"requestBytes":120,"responseBytes":4500,"count":1,"kind":"tool"}'
)
CHANGE_LINE = (
    f'{{"id":"{CHANGE_ID}","type":"admin_change","timestamp":"2026-11-23T10:15:31.000Z","orgId":"{ORG}",'
    f'"eventType":"member.role_changed","actorId":"{PERSON}","actorLabel":"Ana Ek",'
    '"targetId":"33333333-3333-4333-8333-333333333333","targetLabel":"Bo Li",'
    '"metadata":{"role":"admin","was":"member"},"ipAddress":"2001:db8::7","requestId":"req-2"}'
)
BEHIND = (
    "entry with timestamp 2026-11-23 10:15:30.123 +0000 UTC ignored, reason: 'entry too far behind, entry timestamp is:"
    " 2026-11-23T10:15:30Z, oldest acceptable timestamp is: 2026-11-23T11:00:00Z',\n"
)


def ignored(count: int, total: int, tenant: str = "fake") -> str:
    return (
        f"{BEHIND}user '{tenant}', total ignored: {count} out of {total} for stream: {{service_name=\"mcp-gateway\"}}"
    )


def outgoing(url: str = HOST, **config: str) -> Outgoing:
    return Loki().request(Target(url, config), BATCH, now=NOW, token="")


def test_the_body_has_a_stream_for_each_type() -> None:
    sent = outgoing()
    assert sent.body.decode() == (
        '{"streams":[{"stream":{"service_name":"mcp-gateway","event_type":"tool_call",'
        f'"org_id":"{ORG}"}},"values":[["1795428930123000000",{json.dumps(CALL_LINE)}]]}},'
        '{"stream":{"service_name":"mcp-gateway","event_type":"admin_change",'
        f'"org_id":"{ORG}"}},"values":[["1795428931000000000",{json.dumps(CHANGE_LINE)}]]}}]}}'
    )
    assert sent.headers == {"Content-Type": "application/json"}
    assert sent.may_compress


def test_the_oldest_line_of_a_stream_is_first() -> None:
    first, second = a_call(), a_call(timestamp=NOW.replace(hour=9))
    sent = Loki().request(Target(HOST, {}), [first, second], now=NOW, token="")
    (stream,) = json.loads(sent.body)["streams"]
    assert [json.loads(line)["timestamp"] for _, line in stream["values"]] == [
        "2026-11-23T09:00:00.000Z",
        "2026-11-23T10:15:30.123Z",
    ]


def test_user_and_tenant_are_headers() -> None:
    sent = outgoing(username="1234", password="glc_secret", tenant="team-blue")
    assert sent.headers == {
        "Content-Type": "application/json",
        "Authorization": "Basic MTIzNDpnbGNfc2VjcmV0",
        "X-Scope-OrgID": "team-blue",
    }
    assert "glc_secret" not in repr(sent)
    assert "MTIzNDpn" not in repr(sent)


@pytest.mark.parametrize("config", [{}, {"username": "1", "password": "p"}, {"tenant": "a-Z_9.!*'()"}])
def test_a_usable_destination_passes(config: dict[str, str]) -> None:
    Loki().check(HOST, config)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"username": "1"}, "password"),
        ({"password": "p"}, "username"),
        ({"tenant": "a|b"}, "tenant"),
        ({"tenant": "a\r\nb"}, "tenant"),
        ({"tenant": "a\n"}, "tenant"),
        ({"tenant": ".."}, "tenant"),
        ({"tenant": "x" * 151}, "tenant"),
    ],
)
def test_an_unusable_destination_is_refused_by_field(config: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidDestination) as refused:
        Loki().check(HOST, config)
    assert (refused.value.code, [*refused.value.fields]) == ("config_missing", [field])


@pytest.mark.parametrize(("status", "body"), [(204, ""), (200, ""), (200, "\n")])
def test_a_success_has_no_body(status: int, body: str) -> None:
    assert Loki().read(answer(status, body), BATCH) == Delivered()


def test_entries_that_are_all_ignored_are_refused_for_good() -> None:
    verdict = Loki().read(answer(400, ignored(2, 2)), BATCH)
    assert isinstance(verdict, Delivered)
    assert [*verdict.refused] == [0, 1]
    assert verdict.is_certain
    assert verdict.refused[0].startswith(
        "Loki rejects lines more than an hour older than the newest line of their stream."
        " 400: entry with timestamp 2026-11-23 10:15:30.123 +0000 UTC ignored"
    )


@pytest.mark.parametrize(
    ("oldest", "is_refused"), [("2026-11-23T10:16:00Z", True), ("2026-11-23T10:15:31Z", False), ("soon", False)]
)
def test_entries_that_are_all_too_old_are_refused_for_good(oldest: str, is_refused: bool) -> None:
    text = f"has timestamp too old: 2026-11-23T10:15:30Z, oldest acceptable timestamp is: {oldest}"
    verdict = Loki().read(answer(400, f"entry for stream '{{org_id=\"1\"}}' {text}"), BATCH)
    assert isinstance(verdict, Delivered if is_refused else BatchRefused)
    if isinstance(verdict, Delivered):
        assert (verdict.is_certain, [*verdict.refused]) == (True, [0, 1])
        assert verdict.refused[0].startswith("Loki rejects lines older than its limit, one week")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, ignored(1, 2), BatchRefused),
        (400, ignored(1, 1), BatchRefused),  # of one stream, while the other one is stored
        (400, ignored(2, 2) + "\nPer stream rate limit exceeded (limit: 3MB/sec)", BatchRefused),
        (400, ignored(1, 2, tenant="tenant-blue"), BatchRefused),
        (400, "entry for stream '{org_id=\"1\"}' has timestamp too old: 2026-11-01T00:00:00Z", BatchRefused),
        (400, "entry for stream '{org_id=\"1\"}' has timestamp too new: 2027-11-01T00:00:00Z", BatchRefused),
        (400, "Max entry size '256KB' bytes exceeded for stream '{}' while adding an entry", BatchRefused),
        (400, "entry out of order", BatchRefused),
        (400, "no org id", DestinationRefused),
        (400, "tenant ID 'a|b' contains unsupported character '|'", DestinationRefused),
        (400, "missing required labels env for user fake for stream {}", DestinationRefused),
        (400, "entry for stream '{}' has 3 label names; limit 2", DestinationRefused),
        (260, "ingestion blocked for user fake until '2026-12-01' with status code '260'", RetryLater),
        (202, "", RetryLater),
    ],
)
def test_other_answers(status: int, body: str, kind: type[Verdict]) -> None:
    assert isinstance(Loki().read(answer(status, body), BATCH), kind)

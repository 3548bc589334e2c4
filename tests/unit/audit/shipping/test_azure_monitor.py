from __future__ import annotations

import json
from urllib.parse import parse_qs

import pytest

from audit.shipping.platforms.azure_monitor import AzureMonitor
from audit.shipping.platforms.exchange import (
    BatchRefused,
    Delivered,
    DestinationRefused,
    InvalidDestination,
    Outgoing,
    RetryLater,
    Token,
    Verdict,
)
from tests.unit.audit.shipping.samples import BATCH, CALL, CHANGE, NOW, answer, target

PLATFORM = AzureMonitor()
URL = "https://gw-a1b2.eastus-1.ingest.monitor.azure.com"
TENANT = "0F0E0D0C-1111-2222-3333-444455556666"
DCR = "dcr-000a00a000a00000a000000aa000a0aa"
CONFIG = {"tenantId": TENANT, "clientId": "app-1", "clientSecret": "S3cr&t=~é", "dcrImmutableId": DCR}


def test_the_request() -> None:
    sent = PLATFORM.request(target(f"{URL}/", **CONFIG), BATCH, now=NOW, token="bearer-1")
    assert sent.url == f"{URL}/dataCollectionRules/{DCR}/streams/Custom-McpGateway_CL?api-version=2023-01-01"
    assert sent.headers == {"Content-Type": "application/json", "Authorization": "Bearer bearer-1"}
    assert sent.may_compress
    assert "bearer-1" not in repr(sent)
    call, change = json.loads(sent.body)
    common = {"TimeGenerated": "2026-11-23T10:15:30.123Z", "EventId": CALL.id, "Category": "tool_call"}
    assert call.items() >= common.items()
    assert sorted(call.keys() - common.keys()) == sorted(
        """OrgId UserId UserLabel Vendor Tool Source Status ErrorCode DurationMs VendorMs CredentialScope CredentialName
        Cached ClientId ClientName IpAddress RequestId RequestBytes ResponseBytes Count Kind""".split()
    )
    assert (call["ErrorCode"], call["DurationMs"], call["Cached"]) == ("vendor_timeout", 1500, False)
    assert change == {
        "TimeGenerated": "2026-11-23T10:15:31.000Z",
        "EventId": CHANGE.id,
        "Category": "admin_change",
        **{name[0].upper() + name[1:]: value for name, value in CHANGE.fields.items()},
    }
    assert not {"Type", "TenantId", "Title", "UniqueId", "id"} & (call.keys() | change.keys()), "reserved by Azure"


def test_a_stream_of_its_own() -> None:
    sent = PLATFORM.request(target(URL, **CONFIG, stream="Custom-Mine"), BATCH, now=NOW, token="t")
    assert sent.url.endswith(f"/{DCR}/streams/Custom-Mine?api-version=2023-01-01")


@pytest.mark.parametrize(
    ("cloud", "login"),
    [
        ("com", "login.microsoftonline.com"),
        ("us", "login.microsoftonline.us"),
        ("cn", "login.partner.microsoftonline.cn"),
    ],
)
def test_the_request_for_a_token(cloud: str, login: str) -> None:
    place = target(f"https://gw.region-1.Ingest.monitor.azure.{cloud}:443", **CONFIG)
    sent = PLATFORM.token_request(place)
    assert isinstance(sent, Outgoing)
    assert sent.url == f"https://{login}/{TENANT}/oauth2/v2.0/token"
    assert sent.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert not sent.may_compress
    assert parse_qs(sent.body.decode(), strict_parsing=True) == {
        "grant_type": ["client_credentials"],
        "client_id": ["app-1"],
        "client_secret": ["S3cr&t=~é"],
        "scope": [f"https://monitor.azure.{cloud}//.default"],
    }
    assert "S3cr" not in repr((place, sent))


@pytest.mark.parametrize(
    "url",
    [
        URL,
        f"{URL}/",
        f"{URL}:443",
        "https://GW.EastUS-1.ingest.Monitor.azure.com",
        "https://gw.usgovvirginia-1.ingest.monitor.azure.us",
        "https://gw.chinanorth3-1.ingest.monitor.azure.cn",
    ],
)
def test_hosts_of_the_ingestion_domain(url: str) -> None:
    PLATFORM.check(url, CONFIG)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://ingest.monitor.azure.com",
        "https://.ingest.monitor.azure.com",
        "https://evilingest.monitor.azure.com",
        "https://evil-ingest.monitor.azure.com",
        "https://a.ingest.monitor.azure.com.evil.example",
        "https://a.ingest.monitor.azure.com.",
        "https://a.ingest.monitor.azure.de",
        "https://a.ingest.monitor.azure.computer",
        "https://a.ingest-monitor.azure.com",
        "https://monitor.azure.com",
        "https://a.ingest.monitor.azure.com@evil.example",
        "https://evil.example#.ingest.monitor.azure.com",
        "https://evil.example/.ingest.monitor.azure.com",
        "https://evil.example?.ingest.monitor.azure.com",
        "https://evil.example\\.ingest.monitor.azure.com",
        "https://evil.example%2f.ingest.monitor.azure.com",
        "https://me@a.ingest.monitor.azure.com",
        "https://a.ingest.monitor.azure.com:8443",
        "https://-a.ingest.monitor.azure.com",
        "https://\u212a.ingest.monitor.azure.com",
    ],
)
def test_other_hosts_are_refused(url: str) -> None:
    with pytest.raises(InvalidDestination) as refusal:
        PLATFORM.check(url, CONFIG)
    assert (refusal.value.code, set(refusal.value.fields)) == ("endpoint_not_allowed", {"endpointUrl"})


@pytest.mark.parametrize("tenant", [TENANT, TENANT.lower(), "contoso.onmicrosoft.com", "a-b.Example"])
def test_tenants(tenant: str) -> None:
    PLATFORM.check(URL, {**CONFIG, "tenantId": tenant, "stream": "Microsoft-CommonSecurityLog"})


HOSTILE = [
    "",
    "..",
    "a/b",
    "a b",
    "a?x=1",
    "a#b",
    "a%2fb",
    "a\\b",
    "a\n",
    f"{TENANT}/../common",
    "\u212a.example",
    "x" * 200,
]


@pytest.mark.parametrize("tenant", [*HOSTILE, "common", "a..b", ".a.b", "a.b.", "-a.b", "a.b/oauth2"])
def test_a_tenant_cannot_change_the_path(tenant: str) -> None:
    refused({"tenantId": tenant})


@pytest.mark.parametrize("rule", [*HOSTILE, "dcr-", "dcr", "000a", "dcr-0/..", "dcr-0.0", "dcr-0\n"])
def test_a_rule_cannot_change_the_path(rule: str) -> None:
    refused({"dcrImmutableId": rule})


@pytest.mark.parametrize("stream", [*HOSTILE[1:], ".", "-a", "_a", "Custom-A?api-version=1", "Custom-A\n"])
def test_a_stream_cannot_change_the_path(stream: str) -> None:
    refused({"stream": stream})


def refused(value: dict[str, str]) -> None:
    with pytest.raises(InvalidDestination) as refusal:
        PLATFORM.check(URL, {**CONFIG, **value})
    assert (refusal.value.code, refusal.value.fields.keys()) == ("config_missing", value.keys())


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (204, Delivered()),
        (200, Delivered()),
        (400, DestinationRefused("400: no")),
        (401, RetryLater("401: no", 60.0)),
        (403, DestinationRefused("403: no")),
        (404, DestinationRefused("404: no")),
        (413, BatchRefused("413: no")),
        (429, RetryLater("429: no", 60.0)),
        (500, RetryLater("500: no", 60.0)),
        (503, RetryLater("503: no", 60.0)),
    ],
)
def test_answers(status: int, verdict: Verdict) -> None:
    assert PLATFORM.read(answer(status, "no", {"Retry-After": "60"}), BATCH) == verdict


UNUSABLE = RetryLater("200: the sign-in service's answer has no usable token")
WRONG_SECRET = {
    "error": "invalid_client",
    "error_description": "AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1\r\nCorrelation ID: 2",
    "error_codes": [7000215],
}
NO_TENANT = {"error": "invalid_request", "error_description": "AADSTS90002: Tenant 'x' not found. Trace ID: 1"}
LATER = {"error": "temporarily_unavailable", "error_description": "AADSTS90033: A transient error has occurred."}


@pytest.mark.parametrize(
    ("status", "body", "result"),
    [
        (200, '{"token_type":"Bearer","expires_in":3600,"access_token":"abc.def"}', Token("abc.def", 3240.0)),
        (200, '{"expires_in":"3600","access_token":"abc"}', Token("abc", 3240.0)),
        (200, '{"expires_in":1e9,"access_token":"abc"}', Token("abc", 77760.0)),
        (200, '{"expires_in":0,"access_token":"abc"}', UNUSABLE),
        (200, '{"expires_in":"NaN","access_token":"abc"}', UNUSABLE),
        (200, '{"expires_in":"soon","access_token":"abc"}', UNUSABLE),
        (200, '{"access_token":"abc"}', UNUSABLE),
        (200, '{"expires_in":3600,"access_token":"a\\r\\nHost: b"}', UNUSABLE),
        (200, '{"expires_in":3600,"access_token":""}', UNUSABLE),
        (200, '{"expires_in":3600,"access_token":7}', UNUSABLE),
        (200, "[]", UNUSABLE),
        (200, b"\xff", UNUSABLE),
        (200, "<html>", UNUSABLE),
        (401, WRONG_SECRET, DestinationRefused("401: invalid_client: AADSTS7000215: Invalid client secret provided.")),
        (400, NO_TENANT, DestinationRefused("400: invalid_request: AADSTS90002: Tenant 'x' not found.")),
        (400, LATER, RetryLater("400: temporarily_unavailable: AADSTS90033: A transient error has occurred.", 20.0)),
        (400, {"error": ["x"]}, DestinationRefused('400: {"error": ["x"]}')),
        (404, "", DestinationRefused("404, without a text")),
        (302, "", DestinationRefused("302: the address redirects, which is not followed")),
        (429, "slow", RetryLater("429: slow", 20.0)),
        (503, "", RetryLater("503, without a text", 20.0)),
    ],
)
def test_tokens(status: int, body: object, result: object) -> None:
    raw = body if isinstance(body, bytes | str) else json.dumps(body)
    assert PLATFORM.read_token(answer(status, raw, {"Retry-After": "20"})) == result


def test_a_token_is_in_no_repr() -> None:
    assert "abc.def" not in repr(Token("abc.def", 1))

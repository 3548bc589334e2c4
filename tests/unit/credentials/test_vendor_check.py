"""The meaning of a vendor's answer for the fields; the question ends within its deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from credentials import vendor_check
from credentials.errors import CredentialRejected, EndpointNotAllowed
from credentials.vendor_check import CheckResult, ProbeAnswer, Verdict, check, judge
from gateway.catalog.vendor import CredentialField, HeaderTemplate, Validation, Vendor
from gateway.lib.outbound import AddressRefused

FIELDS = {"apiKey": "the-secret-value"}
LISTED = ProbeAnswer(200, tools_listed=True)


def vendor(*, url: str = "http://127.0.0.1:9100/mcp", validation: Validation | None = None) -> Vendor:
    return Vendor(
        slug="acme",
        name="Acme",
        url=url,
        tool_prefix="acme",
        headers=(HeaderTemplate("X-Api-Key", "{apiKey}"),),
        fields=(CredentialField("apiKey", "API key", secret=True, required=True),),
        validation=validation,
    )


class Probe:
    """A transport that answers as told and remembers what it was asked."""

    def __init__(self, answer: Callable[[], Awaitable[ProbeAnswer]]) -> None:
        self._answer = answer
        self.asked: list[tuple[Any, ...]] = []

    async def __call__(
        self, url: str, headers: Mapping[str, str], method: str, params: Mapping[str, Any], timeout_s: float
    ) -> ProbeAnswer:
        self.asked.append((url, dict(headers), method, dict(params), timeout_s))
        return await self._answer()


def says(answer: ProbeAnswer) -> Probe:
    async def reply() -> ProbeAnswer:
        return answer

    return Probe(reply)


def fails(fault: BaseException) -> Probe:
    async def reply() -> ProbeAnswer:
        raise fault

    return Probe(reply)


@pytest.mark.parametrize(
    ("answer", "asked_tool", "verdict"),
    [
        (LISTED, False, Verdict.VALIDATED),
        (ProbeAnswer(200), True, Verdict.VALIDATED),
        (ProbeAnswer(202), True, Verdict.VALIDATED),
        (ProbeAnswer(401), False, Verdict.REJECTED),
        (ProbeAnswer(403), False, Verdict.REJECTED),
        (ProbeAnswer(401, tools_listed=True), True, Verdict.REJECTED),
        (ProbeAnswer(None), False, Verdict.UNCONFIRMED),
        (ProbeAnswer(None, tools_listed=True), True, Verdict.UNCONFIRMED),
        (ProbeAnswer(200), False, Verdict.UNCONFIRMED),
        (ProbeAnswer(302), True, Verdict.UNCONFIRMED),
        (ProbeAnswer(400), False, Verdict.UNCONFIRMED),
        (ProbeAnswer(404), True, Verdict.UNCONFIRMED),
        (ProbeAnswer(429), False, Verdict.UNCONFIRMED),
        (ProbeAnswer(500, tools_listed=True), False, Verdict.UNCONFIRMED),
        (ProbeAnswer(503), True, Verdict.UNCONFIRMED),
        (ProbeAnswer(200, tools_listed=True, is_error=True, error_text="try later"), False, Verdict.UNCONFIRMED),
    ],
)
def test_only_a_clear_answer_decides(answer: ProbeAnswer, asked_tool: bool, verdict: Verdict) -> None:
    assert judge(answer, asked_tool=asked_tool).verdict is verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Request failed with status code: 401", Verdict.REJECTED),
        ("HTTP 403", Verdict.REJECTED),
        ("Unauthorized", Verdict.REJECTED),
        ("API error: Forbidden", Verdict.REJECTED),
        ("Authentication failed for this tenant", Verdict.REJECTED),
        ('{"error":"invalid_api_key"}', Verdict.REJECTED),
        ("Invalid API key provided", Verdict.REJECTED),
        ("the access token is an expired token", Verdict.REJECTED),
        ("missing credentials", Verdict.REJECTED),
        ("device 401 was not found", Verdict.UNCONFIRMED),
        ("HTTP 4011", Verdict.UNCONFIRMED),
        ("Rate limit exceeded", Verdict.UNCONFIRMED),
        ("upstream 500", Verdict.UNCONFIRMED),
        ("", Verdict.UNCONFIRMED),
        ("x" * 5_000 + " unauthorized", Verdict.UNCONFIRMED),
    ],
)
def test_a_tool_error_rejects_only_when_it_passes_a_refusal_on(text: str, verdict: Verdict) -> None:
    assert judge(ProbeAnswer(200, is_error=True, error_text=text), asked_tool=True).verdict is verdict


def test_the_verdict_never_repeats_the_vendors_text() -> None:
    answer = ProbeAnswer(200, is_error=True, error_text="invalid api key the-secret-value")
    assert "the-secret-value" not in repr(judge(answer, asked_tool=True))


@pytest.mark.parametrize(
    ("verdict", "validated", "refusal"),
    [
        (Verdict.VALIDATED, True, None),
        (Verdict.UNCONFIRMED, False, None),
        (Verdict.REJECTED, False, CredentialRejected),
        (Verdict.ADDRESS_REFUSED, False, EndpointNotAllowed),
    ],
)
def test_what_follows_from_a_verdict(verdict: Verdict, validated: bool, refusal: type[Exception] | None) -> None:
    result = CheckResult(verdict, "because")
    assert result.validated is validated
    if refusal is None:
        result.raise_if_refused()
    else:
        with pytest.raises(refusal):
            result.raise_if_refused()


async def test_without_a_validation_tool_the_tools_are_listed_with_the_fields() -> None:
    probe = says(LISTED)
    assert (await check(vendor(), FIELDS, ask=probe)).verdict is Verdict.VALIDATED
    assert probe.asked == [("http://127.0.0.1:9100/mcp", {"X-Api-Key": "the-secret-value"}, "tools/list", {}, 5.0)]


async def test_the_catalogs_validation_tool_is_called() -> None:
    validation = Validation(tool="acme_whoami", arguments=MappingProxyType({"full": False}))
    probe = says(ProbeAnswer(200))
    assert (await check(vendor(validation=validation), FIELDS, ask=probe)).validated
    headers = {"X-Api-Key": "the-secret-value"}
    params = {"name": "acme_whoami", "arguments": {"full": False}}
    assert probe.asked == [("http://127.0.0.1:9100/mcp", headers, "tools/call", params, 5.0)]


@pytest.mark.parametrize("fault", [ConnectionRefusedError(), TimeoutError(), OSError("no route")])
async def test_an_unreachable_vendor_confirms_nothing(fault: Exception) -> None:
    assert (await check(vendor(), FIELDS, ask=fails(fault))).verdict is Verdict.UNCONFIRMED


async def test_an_address_refused_while_connecting_is_not_stored() -> None:
    assert (await check(vendor(), FIELDS, ask=fails(AddressRefused()))).verdict is Verdict.ADDRESS_REFUSED


@pytest.mark.parametrize("url", ["http://169.254.169.254/mcp", "http://0x7f.1/mcp", "http://user@vendor.example/mcp"])
async def test_a_refused_address_is_not_even_tried(url: str) -> None:
    probe = says(LISTED)
    assert (await check(vendor(url=url), FIELDS, ask=probe)).verdict is Verdict.ADDRESS_REFUSED
    assert probe.asked == []


async def test_a_fault_of_our_own_is_not_taken_for_an_answer() -> None:
    with pytest.raises(KeyError):
        await check(vendor(), FIELDS, ask=fails(KeyError("bug")))


async def test_a_vendor_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = asyncio.Event()

    async def hang() -> ProbeAnswer:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return LISTED

    monkeypatch.setattr(vendor_check, "CHECK_TIMEOUT_S", 0.05)
    async with asyncio.timeout(60):
        result = await check(vendor(), FIELDS, ask=Probe(hang))
    assert result.verdict is Verdict.UNCONFIRMED
    assert cancelled.is_set()


def test_the_deadline_is_the_documented_one() -> None:
    assert vendor_check.CHECK_TIMEOUT_S == 5.0


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (ProbeAnswer(None), "The vendor didn’t respond in time."),
        (ProbeAnswer(None, failure="The vendor’s host name was not found."), "The vendor’s host name was not found."),
        (ProbeAnswer(503, failure="of no use"), "The vendor answered 503."),
    ],
)
def test_the_reason_for_no_answer_is_said(answer: ProbeAnswer, detail: str) -> None:
    assert judge(answer, asked_tool=False) == CheckResult(Verdict.UNCONFIRMED, detail)

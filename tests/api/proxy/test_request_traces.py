"""Spans of requests, the trace context that vendors get, and the line of each request. Spec: contract.md 7"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from gateway.lib.tracing import Tracing
from proxy import runtime
from proxy.request_traces import RequestTraces
from tests.api.proxy.conftest import Agent
from tests.factories.tenant import Tenant
from tests.fakes.vendor import FakeVendor
from tests.garbage import freed_soon_without_collection

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{SPAN}-01"
PHASES = {"auth", "session", "vendor", "audit"}


class Traced:
    """The spans that this process would send to a collector."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._traces = RequestTraces(Tracing(self._exporter))
        runtime.current().traces = self._traces

    def spans(self) -> list[ReadableSpan]:
        self._traces.close()
        return list(self._exporter.get_finished_spans())


@pytest.fixture
async def traced(agent: Agent, settings: Any) -> Traced:
    settings.TRACES = True
    return Traced()


def last_meta(vendor: FakeVendor) -> dict[str, Any]:
    meta: dict[str, Any] = vendor.bodies[-1]["params"].get("_meta", {})
    return meta


async def test_a_call_is_a_request_with_its_phases_in_the_callers_trace(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, traced: Traced
) -> None:
    answer = await agent.rpc(
        tenant.agent_key, "tools/call", {"name": "fake_write", "arguments": {}}, traceparent=GOOD, tracestate="a=1"
    )
    assert answer.status_code == 200
    by_name = {span.name: span for span in traced.spans()}
    assert set(by_name) == {"request", *PHASES}
    request = by_name["request"]
    assert request.parent is not None
    assert {f"{span.context.trace_id:032x}" for span in by_name.values()} == {TRACE}
    assert f"{request.parent.span_id:016x}" == SPAN
    for phase in PHASES:
        span = by_name[phase]
        assert span.parent is not None
        assert span.parent.span_id == request.context.span_id
        assert request.start_time <= span.start_time <= span.end_time <= request.end_time, phase
    attributes = dict(request.attributes or {})
    assert attributes["http.response.status_code"] == 200
    assert (attributes["gateway.route"], attributes["gateway.vendor"], attributes["gateway.tool"]) == (
        *("mcp", "fake"),
        "fake_write",
    )
    # The vendor's parent is our span around its work, in the caller's trace.
    expected = {"traceparent": f"00-{TRACE}-{by_name['vendor'].context.span_id:016x}-01", "tracestate": "a=1"}
    assert last_meta(vendor) == expected


async def test_meta_may_name_the_callers_span(agent: Agent, tenant: Tenant, vendor: FakeVendor, traced: Traced) -> None:
    meta = {"traceparent": GOOD, "com.example/note": "kept", "progressToken": "callers-token"}
    await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_list", "arguments": {}, "_meta": meta})
    sent = last_meta(vendor)
    assert sent["com.example/note"] == "kept"
    assert sent["traceparent"].startswith(f"00-{TRACE}-")
    assert SPAN not in sent["traceparent"]
    assert tenant.agent_key not in json.dumps(vendor.bodies)
    assert {f"{span.context.trace_id:032x}" for span in traced.spans()} == {TRACE}


@pytest.mark.parametrize("bad", ["nonsense", f"00-{'0' * 32}-{SPAN}-01", f"{GOOD}-more"])
async def test_a_bad_traceparent_begins_a_trace(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, traced: Traced, bad: str
) -> None:
    params = {"name": "fake_list", "arguments": {}, "_meta": {"traceparent": bad}}
    assert (await agent.rpc(tenant.agent_key, "tools/call", params, traceparent=bad)).status_code == 200
    assert bad not in last_meta(vendor)["traceparent"]
    requests = [span for span in traced.spans() if span.name == "request"]
    assert [span.parent for span in requests] == [None]


async def test_a_caller_who_does_not_sample_is_believed(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, traced: Traced
) -> None:
    await agent.rpc(
        tenant.agent_key, "tools/call", {"name": "fake_list", "arguments": {}}, traceparent=f"00-{TRACE}-{SPAN}-00"
    )
    assert last_meta(vendor)["traceparent"].endswith("-00")
    assert traced.spans() == []


async def test_a_refused_stranger_does_not_keep_the_request_out(agent: Agent, traced: Traced) -> None:
    params = {"name": "fake_list", "arguments": {}}
    answer = await agent.rpc(
        "cak_unknown", "tools/call", params, traceparent=f"00-{TRACE}-{SPAN}-00", tracestate="planted=1"
    )
    assert answer.status_code == 401
    request, *_ = (span for span in traced.spans() if span.name == "request")
    assert f"{request.context.trace_id:032x}" == TRACE, "for correlation"
    assert len(request.context.trace_state) == 0


async def test_a_refused_stranger_does_not_have_the_request_exported(
    agent: Agent, tenant: Tenant, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
    settings.TRACES = True
    traced = Traced()
    params = {"name": "fake_list", "arguments": {}}
    assert (await agent.rpc("cak_unknown", "tools/call", params, traceparent=GOOD)).status_code == 401
    assert (await agent.rpc(tenant.agent_key, "tools/call", params, traceparent=GOOD)).status_code == 200
    statuses = [
        dict(span.attributes or {})["http.response.status_code"] for span in traced.spans() if span.name == "request"
    ]
    assert statuses == [200], "a known caller is believed"


async def test_a_trace_id_of_a_strangers_choice_wins_no_lottery(
    agent: Agent, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    monkeypatch.setattr("proxy.request_traces.new_trace_id", lambda: 2**128 - 1)  # one that the ratio leaves out
    settings.TRACES = True
    traced = Traced()
    taken = f"00-{1:032x}-{SPAN}-01"
    params = {"name": "fake_list", "arguments": {}}
    assert (await agent.rpc("cak_unknown", "tools/call", params, traceparent=taken)).status_code == 401
    assert traced.spans() == []


async def test_faults_are_errors_and_name_no_secret(
    agent: Agent, tenant: Tenant, vendor: FakeVendor, traced: Traced
) -> None:
    await agent.call(tenant.agent_key, "planted_tool", planted="value")
    vendor.status = 500
    await agent.call(tenant.agent_key, "fake_list", planted="value")
    assert (await agent.call("cak_planted", "fake_list")).status_code == 401
    spans = traced.spans()
    requests = [span for span in spans if span.name == "request"]
    assert [span.status.status_code is StatusCode.ERROR for span in requests] == [False, True, False]
    text = "".join(span.to_json() for span in spans)
    assert [word for word in ("planted", tenant.agent_key, "right-key") if word in text] == []


async def test_without_traces_nothing_is_added(agent: Agent, tenant: Tenant, vendor: FakeVendor) -> None:
    await agent.rpc(tenant.agent_key, "tools/call", {"name": "fake_list", "arguments": {}}, traceparent=GOOD)
    assert last_meta(vendor) == {}


async def test_a_traced_call_leaves_no_garbage(agent: Agent, tenant: Tenant, traced: Traced) -> None:
    from proxy.request_context import RequestContext
    from proxy.trace import Trace

    await agent.call(tenant.agent_key, "fake_list")
    async with freed_soon_without_collection(RequestContext, Trace):
        for _ in range(5):
            await agent.call(tenant.agent_key, "fake_list")


@pytest.mark.parametrize("is_on", [True, False])
async def test_a_line_for_each_request_on_demand(
    agent: Agent, tenant: Tenant, jwt: str, settings: Any, caplog: pytest.LogCaptureFixture, is_on: bool
) -> None:
    settings.LOG_REQUESTS = is_on
    caplog.set_level(logging.INFO, logger="gateway.requests")
    await agent.call(tenant.agent_key, "fake_list", planted_argument="planted value")
    await agent.call(tenant.agent_key, "planted_tool")
    await agent.cli(jwt, "list", {"planted": "value"})
    await agent.call("cak_planted", "fake_list")
    lines = [record.msg for record in caplog.records if record.name == "gateway.requests"]
    facts = [line if isinstance(line, dict) else json.loads(line) for line in lines]
    assert len(facts) == (4 if is_on else 0)
    if not is_on:
        return
    assert [(each["route"], each["status"], each.get("outcome")) for each in facts] == [
        ("mcp", 200, "success"),
        ("mcp", 200, "denied"),
        ("cli", 200, "success"),
        ("mcp", 401, None),
    ]
    assert (facts[0]["vendor"], facts[0]["tool"], facts[1]["tool"]) == ("fake", "fake_list", "")
    assert facts[0]["org_id"] == str(tenant.organization.pk)
    assert all(each["total_ms"] >= each["auth_ms"] for each in facts)
    assert "planted" not in str(facts)
    assert tenant.agent_key not in str(facts)

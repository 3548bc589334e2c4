"""Log shipping over OTLP to an OpenTelemetry collector that others have written."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.db import transaction

from audit.actor import Target
from audit.admin_log import record_admin
from audit.event_types import EventType
from audit.models import AdminAuditEntry, LogDestination, RequestAuditEntry
from audit.shipping import destinations
from gateway.lib.guarded_client import send
from gateway.lib.tracing import Tracing
from proxy.request_traces import RequestTraces
from proxy.timing import Timing
from tests.api.audit.rows import ORG, OTHER_ORG
from tests.api.audit.shipping.stage import ANA, change, deliver_due, record_calls
from tests.factories.until import until_true
from tests.vendors.processes import RunningServer
from tests.vendors.servers import collector, has_collector

pytestmark = pytest.mark.django_db(transaction=True)


def add(url: str, **config: str) -> LogDestination:
    with transaction.atomic():
        return destinations.create(
            org_id=ORG, actor=ANA, label="Collector", platform="otlp", endpoint_url=url, config=config
        )


def ids() -> list[str]:
    """Of all records of ORG, in the order of time."""
    rows = [*RequestAuditEntry.objects.filter(org_id=ORG), *AdminAuditEntry.objects.filter(org_id=ORG)]
    return [str(row.id) for row in sorted(rows, key=lambda row: row.id)]


@pytest.fixture
def real_collector() -> Iterator[RunningServer]:
    if not has_collector():
        pytest.skip("there is no build of the collector for this computer")
    with collector() as server:
        yield server


def test_a_collector_takes_each_record(real_collector: RunningServer) -> None:
    destination = add(real_collector.origin, headers="X-Key: a-key-of-the-test")
    record_calls("r-1", "r-2", status="error", error_code="vendor_timeout", user_label="Ana “A” Ü")
    record_calls("theirs", org_id=OTHER_ORG)
    facts = {"was": None, "teams": ["core", None, 3, 2.5, True, {"deep": []}], "large": 2**63}
    with transaction.atomic():
        record_admin(EventType.MEMBER_ROLE_CHANGED, org_id=ORG, actor=ANA, target=Target("u-2", "Bo"), metadata=facts)
    assert deliver_due(send) == 4
    destination.refresh_from_db()
    assert (destination.status, destination.delivered, destination.refused) == ("ok", 4, 0)
    until_true(lambda: real_collector.log().count("log.record.uid") == 4)
    written = real_collector.log()
    assert re.findall(r"log\.record\.uid: Str\((.*?)\)", written) == ids()
    assert "theirs" not in written
    for line in (
        "service.name: Str(mcp-gateway)",
        "EventName: mcp_gateway.tool_call",
        "SeverityNumber: SEVERITY_NUMBER_ERROR(17)",
        "user.name: Str(Ana “A” Ü)",
        "error.type: Str(vendor_timeout)",
        "mcp_gateway.cached: Bool(false)",
    ):
        assert line in written, line


def test_a_wrong_path_of_a_collector_loses_nothing(real_collector: RunningServer) -> None:
    destination = add(f"{real_collector.origin}/v1/records")
    record_calls("r-1")
    assert deliver_due(send) == 0
    destination.refresh_from_db()
    assert (destination.status, destination.refused) == ("failing", 0)
    assert destination.last_error.startswith("404")
    change(destination, endpoint_url=f"{real_collector.origin}/v1/logs")
    assert deliver_due(send) >= 4, "created, the call, the note of the failure, and the change"


@pytest.fixture
def collector_of_traces() -> Iterator[RunningServer]:
    if not has_collector():
        pytest.skip("there is no build of the collector for this computer")
    with collector("traces") as server:
        yield server


def test_a_collector_takes_the_spans_of_a_request(
    collector_of_traces: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector_of_traces.origin)
    traces, timing = RequestTraces(Tracing()), Timing()
    trace = traces.begin({"HTTP_TRACEPARENT": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
    with timing.auth, timing.vendor:
        pass
    ended_s = trace.began_s + 0.25
    traces.end(trace, timing, ended_s, {"gateway.route": "mcp"}, is_error=True, is_authenticated=True)
    traces.close()
    until_true(lambda: collector_of_traces.log().count("Trace ID") >= 3)
    written = collector_of_traces.log()
    assert written.count("0af7651916cd43dd8448eb211c80319c") >= 3
    assert "b7ad6b7169203331" in written
    for line in ("service.name: Str(mcp-gateway)", "gateway.route: Str(mcp)", "request", "auth", "vendor"):
        assert line in written, line

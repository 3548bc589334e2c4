"""The demo vendor over its wire: who may call, what each tool does, and what stays between tenants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from demo import vendor_gate, vendor_inventory, vendor_server
from tests.unit.demo.vendor_session import API_KEY, ORIGIN, VendorSession

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
REQUESTER = {"name": "Ada", "email": "ada@example.com"}


class Pauses:
    """Waits that take no time and are written down."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def app(tmp_path: Path, pauses: Pauses) -> Starlette:
    return vendor_server.create_app(data=tmp_path, clock=lambda: NOW, pause=pauses)


@pytest.fixture
def acme(app: Starlette) -> Iterator[VendorSession]:
    with VendorSession(app) as session:
        yield session


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Api-Key": ""},
        {"X-Api-Key": "demo-short1"},
        {"X-Api-Key": "live-0123456789"},
        {"X-Api-Key": "DEMO-0123456789"},
        {"X-Api-Key": "demo-0123456789 x"},
        {"X-Api-Key": "demo-" + "x" * 300},
        {"Authorization": f"Bearer {API_KEY}"},
    ],
)
def test_call_without_a_usable_key_is_unauthorized(app: Starlette, headers: dict[str, str]) -> None:
    probe = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    with TestClient(app, base_url=ORIGIN, client=("127.0.0.1", 50000)) as http:
        response = http.post("/mcp", json=probe, headers=headers)
        assert response.status_code == 401
        assert response.json()["error"] == "unauthorized"
        assert "demo-" not in response.text
        assert http.get("/mcp", headers=headers).status_code == 401
        assert http.get("/_stats").json() == {"methods": {}, "tools": {}, "unauthorized": 2, "tenants": 0}


def test_two_keys_in_one_call_are_unauthorized(app: Starlette) -> None:
    with TestClient(app, base_url=ORIGIN) as http:
        keys = [("X-Api-Key", API_KEY), ("X-Api-Key", "demo-another-0001")]
        assert http.post("/mcp", json={}, headers=keys).status_code == 401


@pytest.mark.parametrize("path", ["/", "/mcp/", "/healthz/", "/_stats/", "/admin"])
def test_every_other_path_wants_a_key_too(app: Starlette, path: str) -> None:
    with TestClient(app, base_url=ORIGIN, follow_redirects=False) as http:
        assert http.get(path).status_code == 401


def test_shortest_key_is_a_tenant(acme: VendorSession) -> None:
    acme.initialize("demo-1234567")
    assert acme.data("acme_whoami")["devices"] == vendor_inventory.DEVICE_COUNT


def test_every_tool_says_what_it_is(acme: VendorSession) -> None:
    tools = {tool["name"]: tool for tool in acme.tools()}
    hints = {
        name: tuple(tool["annotations"][hint] for hint in ("readOnlyHint", "destructiveHint", "idempotentHint"))
        for name, tool in tools.items()
    }
    reads = (True, False, True)
    assert hints == {
        "acme_whoami": reads,
        "acme_list_devices": reads,
        "acme_get_device": reads,
        "acme_search": reads,
        "acme_create_ticket": (False, False, False),
        "acme_update_device": (False, False, True),
        "acme_delete_ticket": (False, True, False),
        "acme_run_report": reads,
        "acme_fail": reads,
    }
    for name, tool in tools.items():
        assert tool["title"], name
        assert tool["description"], name
        assert tool["annotations"]["openWorldHint"] is False, name
        assert tool["inputSchema"]["type"] == "object", name
        assert ("outputSchema" in tool) == (name != "acme_fail"), name


def test_whoami_returns_a_fingerprint_and_never_the_key(acme: VendorSession) -> None:
    result = acme.call("acme_whoami")
    assert API_KEY not in json.dumps(result)
    fingerprint = result["structuredContent"]["key_fingerprint"]
    assert len(fingerprint) == 16
    acme.initialize("demo-another-0001")
    assert acme.data("acme_whoami")["key_fingerprint"] != fingerprint


def test_devices_are_filtered_and_limited(acme: VendorSession) -> None:
    everything = acme.data("acme_list_devices", limit=100)
    assert everything["total"] == len(everything["devices"]) == vendor_inventory.DEVICE_COUNT
    berlin = acme.data("acme_list_devices", site="berlin", status="online", limit=2)
    assert len(berlin["devices"]) == 2 < berlin["total"]
    assert {(device["site"], device["status"]) for device in berlin["devices"]} == {("berlin", "online")}
    for wrong in ({"status": "asleep"}, {"site": "Paris"}, {"limit": 0}, {"limit": 101}, {"limit": "many"}):
        assert "validation error" in acme.refusal("acme_list_devices", **wrong), wrong


def test_device_is_found_by_id(acme: VendorSession) -> None:
    listed = acme.data("acme_list_devices", limit=1)["devices"][0]
    assert acme.data("acme_get_device", device_id=listed["id"]) == listed
    assert "no device 'dev-999'" in acme.refusal("acme_get_device", device_id="dev-999")
    assert "validation error" in acme.refusal("acme_get_device", device_id="../etc")
    assert "validation error" in acme.refusal("acme_get_device")


def test_device_update_is_idempotent(acme: VendorSession) -> None:
    change = {"device_id": "dev-002", "status": "maintenance", "note": "new disk"}
    first = acme.data("acme_update_device", **change)
    assert (first["status"], first["note"]) == ("maintenance", "new disk")
    assert acme.data("acme_update_device", **change) == first
    assert acme.data("acme_get_device", device_id="dev-002") == first
    assert acme.data("acme_update_device", device_id="dev-002", note="")["note"] == ""
    assert "give a status or a note" in acme.refusal("acme_update_device", device_id="dev-002")
    assert "no device" in acme.refusal("acme_update_device", device_id="dev-999", note="x")


def test_ticket_is_created_found_and_deleted(acme: VendorSession) -> None:
    ticket = acme.data(
        "acme_create_ticket",
        subject="Screen flickers",
        requester=REQUESTER,
        tags=["display", "urgent-ish"],
        priority="high",
        device_id="dev-001",
    )
    assert ticket == {
        "id": "T-1001",
        "subject": "Screen flickers",
        "description": "",
        "priority": "high",
        "tags": ["display", "urgent-ish"],
        "requester": REQUESTER,
        "device_id": "dev-001",
        "created_at": "2027-01-15T08:00:00Z",
    }
    assert acme.data("acme_whoami")["tickets"] == 1
    found = acme.data("acme_search", query={"text": "FLICKERS"})
    assert found == {"hits": [{"kind": "ticket", "id": "T-1001", "summary": "Screen flickers"}], "total": 1}
    assert acme.data("acme_delete_ticket", ticket_id="T-1001") == {"deleted": "T-1001", "subject": "Screen flickers"}
    assert "no ticket 'T-1001'" in acme.refusal("acme_delete_ticket", ticket_id="T-1001")
    assert acme.data("acme_create_ticket", subject="Next", requester=REQUESTER)["id"] == "T-1002"


@pytest.mark.parametrize(
    "changes",
    [
        {"subject": ""},
        {"requester": {"name": "Ada"}},
        {"requester": {**REQUESTER, "email": "nowhere"}},
        {"requester": {**REQUESTER, "phone": "1"}},
        {"priority": "soon"},
        {"tags": ["x"] * 11},
        {"tags": [""]},
        {"device_id": "dev-999"},
    ],
)
def test_ticket_with_wrong_arguments_is_not_created(acme: VendorSession, changes: dict[str, object]) -> None:
    acme.refusal("acme_create_ticket", **{"subject": "x", "requester": REQUESTER, **changes})
    assert acme.data("acme_whoami")["tickets"] == 0


def test_report_reports_progress_and_takes_its_time(acme: VendorSession, pauses: Pauses) -> None:
    parameters = {"name": "acme_run_report", "arguments": {"kind": "inventory"}, "_meta": {"progressToken": "p-1"}}
    *progress, answer = acme.messages("tools/call", parameters)
    steps = [message["params"] for message in progress]
    assert {message["method"] for message in progress} == {"notifications/progress"}
    assert {step["progressToken"] for step in steps} == {"p-1"}
    assert [step["progress"] for step in steps] == [0, 1, 2, 3, 4, 5, 6]
    assert {step["total"] for step in steps} == {6}
    assert sum(pauses.seconds) == pytest.approx(3)
    report = answer["result"]["structuredContent"]
    assert report["counts"] == {"berlin": 8, "osaka": 8, "austin": 8}
    pauses.seconds.clear()
    assert sum(acme.data("acme_run_report", kind="availability", seconds=0)["counts"].values()) == 24
    assert sum(pauses.seconds) == 0
    for seconds in (-1, 11):
        assert "validation error" in acme.refusal("acme_run_report", kind="inventory", seconds=seconds)


def test_failing_tool_fails_with_its_reason(acme: VendorSession) -> None:
    assert acme.refusal("acme_fail") == "Acme is on fire"
    assert acme.refusal("acme_fail", reason="out of paper") == "out of paper"


def test_tenants_do_not_see_each_other(acme: VendorSession) -> None:
    mine = acme.data("acme_list_devices", limit=100)["devices"]
    acme.data("acme_create_ticket", subject="Mine", requester=REQUESTER)
    acme.initialize("demo-another-0001")
    assert acme.data("acme_whoami")["tickets"] == 0
    assert "no ticket" in acme.refusal("acme_delete_ticket", ticket_id="T-1001")
    others = acme.data("acme_list_devices", limit=100)["devices"]
    assert not {device["hostname"] for device in mine} & {device["hostname"] for device in others}


def test_session_belongs_to_the_key_that_opened_it(acme: VendorSession) -> None:
    assert acme.post("tools/list", {}).status_code == 200
    stolen = acme.post("tools/list", {}, **{"X-Api-Key": "demo-another-0001"})
    unknown = acme.post("tools/list", {}, **{"Mcp-Session-Id": "unknown"})
    assert (stolen.status_code, unknown.status_code) == (404, 404)


def test_counters_count_methods_and_tools(acme: VendorSession) -> None:
    acme.call("acme_whoami")
    acme.call("acme_fail")
    acme.call("acme_whoami")
    acme.tools()
    assert acme.http.get("/_stats").json() == {
        "methods": {"initialize": 1, "notifications/initialized": 1, "tools/call": 3, "tools/list": 1},
        "tools": {"acme_whoami": 2, "acme_fail": 1},
        "unauthorized": 0,
        "tenants": 1,
    }


def test_counted_names_are_bounded(acme: VendorSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor_gate, "MAX_COUNTED_NAMES", 3)
    for number in range(5):
        acme.call(f"unknown_{number}")
    acme.call("unknown_0")
    counted = acme.http.get("/_stats").json()["tools"]
    assert counted == {"unknown_0": 2, "unknown_1": 1, "unknown_2": 1, "(other)": 2}


@pytest.mark.parametrize(("peer", "status"), [("127.0.0.1", 200), ("::1", 200), ("192.0.2.7", 404), ("nobody", 404)])
def test_counters_are_for_this_machine_only(app: Starlette, peer: str, status: int) -> None:
    with TestClient(app, base_url=ORIGIN, client=(peer, 50000)) as http:
        assert http.get("/_stats", headers={"X-Forwarded-For": "127.0.0.1"}).status_code == status
        assert http.get("/healthz").json() == {"status": "ok"}


def test_foreign_host_header_is_refused(acme: VendorSession) -> None:
    assert acme.post("tools/list", {}, Host="evil.example").status_code == 421
    assert acme.post("tools/list", {}, Origin="http://evil.example").status_code == 403


def test_tenant_finds_its_data_after_a_restart(tmp_path: Path) -> None:
    with VendorSession(vendor_server.create_app(data=tmp_path)) as session:
        who = session.data("acme_whoami")
        ticket = session.data("acme_create_ticket", subject="Kept", requester=REQUESTER)
        device = session.data("acme_update_device", device_id="dev-001", note="kept too")
    with VendorSession(vendor_server.create_app(data=tmp_path)) as session:
        assert session.data("acme_whoami") == {**who, "tickets": 1}
        assert session.data("acme_get_device", device_id="dev-001") == device
        assert session.data("acme_delete_ticket", ticket_id=ticket["id"])["subject"] == "Kept"
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == 2
    assert not any(API_KEY.encode() in content for content in written)

from __future__ import annotations

from typing import Any

import pytest

from audit.shipping.platforms.changes import Change, change_of
from audit.shipping.platforms.ecs import FIELDS, ecs_document
from tests.unit.audit.shipping.samples import CALL_ID, CHANGE_ID, ORG, PERSON, a_call, a_change

CALL: dict[str, Any] = {
    "ecs": {"version": "8.11.0"},
    "event": {
        "id": CALL_ID,
        "kind": "event",
        "module": "mcp_gateway",
        "dataset": "mcp_gateway.tool_call",
        "category": ["api"],
        "type": ["access", "allowed"],
        "action": "tool_call",
        "outcome": "failure",
        "duration": 1_500_000_000,
    },
    "organization": {"id": str(ORG)},
    "user": {"id": PERSON, "name": "Ana Ek"},
    "mcp_gateway": {
        "vendor": "acme",
        "tool": "list_devices",
        "source": "mcp",
        "status": "error",
        "vendor_ms": 1400,
        "credential": {"scope": "team", "name": "Blue"},
        "cached": False,
        "client": {"id": "client-1", "name": "Editor"},
        "count": 1,
        "kind": "tool",
    },
    "error": {"code": "vendor_timeout"},
    "source": {"address": "203.0.113.7", "ip": "203.0.113.7"},
    "http": {
        "request": {"id": "req-1", "body": {"bytes": 120}},
        "response": {"body": {"bytes": 4500}},
    },
}
CHANGE: dict[str, Any] = {
    "ecs": {"version": "8.11.0"},
    "event": {
        "id": CHANGE_ID,
        "kind": "event",
        "module": "mcp_gateway",
        "dataset": "mcp_gateway.admin_change",
        "category": ["iam"],
        "type": ["change"],
        "action": "member.role_changed",
    },
    "organization": {"id": str(ORG)},
    "user": {"id": PERSON, "name": "Ana Ek"},
    "mcp_gateway": {
        "target": {"id": "33333333-3333-4333-8333-333333333333", "name": "Bo Li"},
        "metadata": '{"role":"admin","was":"member"}',
    },
    "source": {"address": "2001:db8::7", "ip": "2001:db8::7"},
    "http": {"request": {"id": "req-2"}},
}


def test_every_field_of_a_call_has_its_place() -> None:
    assert ecs_document(a_call()) == CALL


def test_every_field_of_a_change_has_its_place() -> None:
    assert ecs_document(a_change()) == CHANGE


def test_the_table_has_every_field_and_no_other() -> None:
    assert {*a_call(item="test://x").fields, *a_change().fields} == set(FIELDS)


@pytest.mark.parametrize(
    ("status", "types", "outcome"),
    [
        ("success", ["access", "allowed"], "success"),
        ("error", ["access", "allowed"], "failure"),
        ("denied", ["access", "denied"], "failure"),
        ("unknown", ["access", "allowed"], "unknown"),
    ],
)
def test_the_status_of_a_call_is_its_outcome(status: str, types: list[str], outcome: str) -> None:
    event = ecs_document(a_call(status=status))["event"]
    assert (event["type"], event["outcome"]) == (types, outcome)


@pytest.mark.parametrize(
    ("event_type", "category", "types"),
    [
        ("team.member_added", ["iam"], ["creation"]),
        ("agent_key.revoked", ["iam"], ["deletion"]),
        ("member.joined", ["iam"], ["creation"]),
        ("mail_domain.released", ["iam"], ["deletion"]),
        ("oauth.consent_granted", ["iam"], ["creation"]),
        ("credential.replaced", ["configuration"], ["change"]),
        ("tool_access.cleared", ["configuration"], ["deletion"]),
        ("billing.activated", ["configuration"], ["change"]),
    ],
)
def test_the_event_type_of_a_change_is_categorized(event_type: str, category: list[str], types: list[str]) -> None:
    event = ecs_document(a_change(event_type=event_type))["event"]
    assert (event["category"], event["type"], event["action"]) == (category, types, event_type)


@pytest.mark.parametrize("address", ["fe80::1%eth0", "unix", "203.0.113.7:443"])
def test_an_address_that_is_no_ip_is_not_called_one(address: str) -> None:
    assert ecs_document(a_call(ip_address=address))["source"] == {"address": address}


def test_blank_columns_leave_no_field() -> None:
    document = ecs_document(
        a_call(error_code="", ip_address="", client_name="", credential_scope="", credential_name="")
    )
    assert "error" not in document
    assert "source" not in document
    assert document["mcp_gateway"]["client"] == {"id": "client-1"}
    assert "credential" not in document["mcp_gateway"]


@pytest.mark.parametrize(("event_type", "change"), [("", Change.UPDATE), ("created", Change.CREATION)])
def test_an_event_type_of_another_form_is_named_too(event_type: str, change: Change) -> None:
    assert change_of(event_type) is change

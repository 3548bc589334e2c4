"""GET /api/dashboard/*: exact shapes, bounds, refusals, and nothing of another organization. Spec: §4.11"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from audit.usage.rollup import roll_up
from orgs.models import Membership, ToolSnapshot
from orgs.services.known_tools import record_tools
from tests.api.audit.rows import NOON
from tests.api.audit.usage.rows import log_row, store
from tests.factories.api import Api

PATHS = ("/dashboard/usage", "/dashboard/savings", "/dashboard/vendors")


@pytest.fixture(autouse=True)
def _noon() -> Any:
    with time_machine.travel(NOON, tick=False):
        yield


def call(api: Api, at: datetime = NOON, **changes: Any) -> Any:
    """A row of the first organization."""
    return log_row(at, **{"org_id": api.cast.org.id, **changes})


@pytest.fixture
def log(api: Api, vendors: None) -> None:
    """Calls of two organizations, half of them rolled up."""
    label: dict[str, Any] = {"user_id": "u-2", "user_label": "Bo"}
    store(
        call(api, NOON - timedelta(days=6, hours=12), duration_ms=100, tool="acme_b", response_bytes=50),
        call(api, NOON - timedelta(days=1), duration_ms=300, status="error", error_code="tool_error"),
        call(api, NOON - timedelta(days=7), duration_ms=9_000, vendor="globex", tool="globex_x", **label),
        call(api, NOON - timedelta(days=1), org_id=api.cast.other_org.id, user_label="Somebody", duration_ms=7_000),
    )
    roll_up()
    store(
        call(api, duration_ms=200, source="cli", vendor="globex", tool="globex_x", response_bytes=10, **label),
        call(api, status="denied", error_code="forbidden"),
        call(api, status="denied", error_code="rate_limited", count=40),
        call(api, status="unknown"),
        call(api, status="unknown", position=None),
        call(api, org_id=api.cast.other_org.id, vendor="globex"),
    )


@pytest.mark.usefixtures("log")
def test_usage_has_the_documented_shape(api: Api) -> None:
    assert api.get("admin", "/dashboard/usage?range=7d") == {
        "range": {"start": "2026-03-04T00:00:00.000Z", "end": "2026-03-10T12:00:00.000Z"},
        "totalCalls": 4,
        "uniqueUsers": 2,
        "avgResponseTimeMs": 200,
        "p50ResponseTimeMs": 205,
        "p95ResponseTimeMs": 297,
        "errors": 1,
        "denied": 1,
        "rateLimited": 40,
        "byVendor": [{"vendor": "acme", "calls": 3}, {"vendor": "globex", "calls": 1}],
        "byUser": [
            {"userId": "user-1", "userLabel": "Ana", "calls": 3},
            {"userId": "u-2", "userLabel": "Bo", "calls": 1},
        ],
        "byDay": [
            {"date": "2026-03-04", "calls": 1},
            {"date": "2026-03-09", "calls": 1},
            {"date": "2026-03-10", "calls": 2},
        ],
        "bySource": {"mcp": 3, "cli": 1},
    }


@pytest.mark.usefixtures("log")
def test_vendors_have_the_documented_shape(api: Api) -> None:
    (acme, globex) = api.get("admin", "/dashboard/vendors?range=7d")["vendors"]
    assert acme == {
        "vendor": "acme",
        "displayName": "Acme",
        "totalCalls": 3,
        "uniqueUsers": 1,
        "avgResponseTimeMs": 200,
        "p50ResponseTimeMs": 98,
        "p95ResponseTimeMs": 297,
        "errors": 1,
        "denied": 1,
        "rateLimited": 40,
        "topTools": [{"tool": "acme_list", "calls": 2}, {"tool": "acme_b", "calls": 1}],
    }
    assert (globex["vendor"], globex["displayName"], globex["totalCalls"]) == ("globex", "Globex", 1)


@pytest.mark.usefixtures("vendors")
def test_five_tools_at_most_and_vendors_that_left_the_catalog_keep_their_slug(api: Api) -> None:
    store(*(call(api, tool=f"t{number}") for number in range(7)), *(call(api, tool="t6", vendor="gone"),))
    store(*(call(api, tool="", kind="prompt", item="greet") for _ in range(3)))
    (acme, gone) = api.get("admin", "/dashboard/vendors")["vendors"]
    assert acme["totalCalls"] == 10
    assert [tool["tool"] for tool in acme["topTools"]] == ["t0", "t1", "t2", "t3", "t4"]
    assert gone["displayName"] == "gone"


def test_savings_are_one_tool_list_for_each_caller_vendor_and_day(api: Api) -> None:
    # Two credentials see lists of 400 and 500 bytes, and the other organization a longer one.
    for org, scope, size in ((api.cast.org, "", 400), (api.cast.org, "team:1", 500), (api.cast.other_org, "", 9_000)):
        definitions = {"acme_list": b"x" * size}
        record_tools(
            organization=org,
            vendor="acme",
            definitions=definitions,
            credential_scope=scope,
            current_scopes=["", "team:1"],
        )
    cli: dict[str, Any] = {"source": "cli", "response_bytes": 300}
    store(
        *(call(api, **cli) for _ in range(3)),
        call(api, NOON - timedelta(days=1), **cli),
        call(api, user_id="u-2", **cli),
        call(api, status="denied", **cli),
        call(api, vendor="unmeasured", **cli),
        call(api, response_bytes=70),
    )
    assert api.get("owner", "/dashboard/savings") == {
        "totalMcpCalls": 1,
        "totalCliCalls": 6,
        "estimatedTokensSaved": 337,
        "estimatedCostSavedUsd": 0.001011,
        "measured": {
            "toolListBytes": 1_350,
            "cliResponseBytes": 1_800,
            "mcpResponseBytes": 70,
            "savedShare": 0.4286,
        },
    }


def test_the_size_of_a_list_follows_it_and_comparing_it_takes_no_statement_more(
    api: Api, django_assert_num_queries: Any
) -> None:
    def record(*tools: bytes) -> None:
        definitions = {f"t{number}": tool for number, tool in enumerate(tools)}
        record_tools(organization=api.cast.org, vendor="acme", definitions=definitions)

    record(b"x" * 30, b"x" * 40)
    assert ToolSnapshot.objects.get().list_bytes == 70
    record(b"x" * 30)
    assert ToolSnapshot.objects.get().list_bytes == 30
    ToolSnapshot.objects.update(list_bytes=0)
    with django_assert_num_queries(3):
        record(b"x" * 30)
    assert ToolSnapshot.objects.get().list_bytes == 30


@pytest.mark.parametrize("path", PATHS)
def test_an_empty_organization_has_zeros_and_empty_lists(api: Api, path: str) -> None:
    store(log_row(org_id=api.cast.other_org.id))
    found = api.get("admin", path + "?range=all")
    shown = found.pop("range", {"start": "2026-03-10T00:00:00.000Z", "end": "2026-03-10T12:00:00.000Z"})
    assert shown == {"start": "2026-03-10T00:00:00.000Z", "end": "2026-03-10T12:00:00.000Z"}
    values = [inner for value in found.values() for inner in (value.values() if isinstance(value, dict) else [value])]
    assert values
    assert all(value in (0, []) for value in values)


@pytest.mark.parametrize(
    ("query", "days"),
    [
        ("", 30),
        ("?range=", 30),
        ("?range=30d", 30),
        ("?range=7d", 7),
        ("?range=1y", 365),
        ("?range=all", 500),
        ("?range=7d&start=2026-03-08", 3),
        ("?range=7d&end=2026-03-08T12:00:00Z", 498),
        ("?start=2026-03-01&end=2026-03-01", 1),
        ("?start=2026-03-01T12:00:00Z&end=2026-03-01T12:00:00Z", 1),
        ("?start=2026-03-01T12:00:00.001Z&end=2026-03-02T11:59:59.998Z", 0),
        ("?start=0001-01-01&end=9999-12-31", 500),
        ("?end=1969-12-31", 0),
    ],
)
def test_a_period_has_the_days_that_it_says(api: Api, query: str, days: int) -> None:
    store(*(call(api, NOON - timedelta(days=number)) for number in reversed(range(500))))
    roll_up(499)
    found = api.get("admin", f"/dashboard/usage{query}")
    assert found["totalCalls"] == len(found["byDay"]) == days
    (vendor,) = api.get("admin", f"/dashboard/vendors{query}")["vendors"] or [{"totalCalls": 0}]
    assert vendor["totalCalls"] == api.get("admin", f"/dashboard/savings{query}")["totalMcpCalls"] == days


def test_the_period_is_shown_with_both_ends_inclusive(api: Api) -> None:
    store(call(api, NOON - timedelta(days=40)))
    assert api.get("admin", "/dashboard/usage?start=2026-03-01&end=2026-03-02")["range"] == {
        "start": "2026-03-01T00:00:00.000Z",
        "end": "2026-03-02T23:59:59.999Z",
    }
    assert api.get("admin", "/dashboard/usage?range=all")["range"] == {
        "start": "2026-01-29T00:00:00.000Z",
        "end": "2026-03-10T12:00:00.000Z",
    }


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("range=90d", {"range"}),
        ("range=7D", {"range"}),
        ("range=90d&start=2026-03-01", {"range"}),
        ("start=yesterday", {"start"}),
        ("end=2026-02-30", {"end"}),
        ("start=2026-03-02&end=2026-03-01", {"start"}),
        ("start=2026-03-11", {"start"}),
        ("start=x&end=y", {"start", "end"}),
    ],
)
def test_a_wrong_period_is_refused_with_every_wrong_name(api: Api, path: str, query: str, fields: set[str]) -> None:
    assert api.faults("admin", "GET", f"{path}?{query}", None) == fields


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.usefixtures("log")
def test_only_admins_of_the_organization_read_it(api: Api, path: str) -> None:
    named = f"{path}?org_id={{org}}"
    assert api.refused("nobody", "GET", path) == (401, "unauthenticated")
    assert api.refused("member", "GET", path) == (403, "forbidden")
    for who, asked in (("other_owner", named), ("stranger", named), ("stranger", path)):
        assert api.refused(who, "GET", asked) == (404, "not_found")
    assert api.get("admin", path) == api.get("owner", named) != api.get("other_owner", path)
    Membership.objects.create(organization=api.cast.other_org, user=api.cast.user("owner"), role="admin")
    assert api.get("owner", f"{path}?org_id={{other}}") == api.get("other_owner", path)
    assert api.get("owner", path) == api.get("owner", named)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.usefixtures("lapsed")
def test_a_lapsed_plan_stops_it_before_the_query_is_read(api: Api, path: str) -> None:
    assert api.refused("owner", "GET", f"{path}?range=x") == (402, "subscription_required")
    assert api.refused("member", "GET", f"{path}?range=x") == (403, "forbidden")

"""Dashboards count the same as the rows of an export of the period add up to. Spec: §4.11"""

from __future__ import annotations

import csv
import io
import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine

from audit.usage.rollup import roll_up
from gateway.lib import clock
from tests.api.audit.rows import NOON
from tests.api.audit.usage.rows import log_row, store
from tests.factories.api import Api
from tests.factories.streamed import body_of

ROWS = 240
BEGIN = NOON - timedelta(days=3)
OUTCOMES = [
    *[("success", "")] * 5,
    ("error", "tool_error"),
    ("error", "rate_limited"),
    ("denied", "forbidden"),
    ("denied", "rate_limited"),
    ("unknown", ""),
]
CALLS = {"success", "error", "unknown"}
# Whole days, whole hours, and parts of hours.
PERIODS = [
    (BEGIN, NOON),
    (BEGIN.replace(hour=0), NOON.replace(hour=0) - timedelta(milliseconds=1)),
    (BEGIN + timedelta(hours=5, minutes=17, milliseconds=3), NOON - timedelta(hours=7, minutes=41)),
]


@pytest.fixture(autouse=True)
def _noon() -> Any:
    with time_machine.travel(NOON + timedelta(minutes=1), tick=False):
        yield


@pytest.fixture(params=[1, 2, 3])
def chance(request: pytest.FixtureRequest, api: Api) -> random.Random:
    """Random rows of two organizations, a part of them rolled up."""
    chance = random.Random(request.param)
    times = sorted(BEGIN + timedelta(milliseconds=chance.randrange(3 * 86_400_000)) for _ in range(ROWS))
    store(*(_row(chance, at, chance.choice([api.cast.org.id, api.cast.other_org.id])) for at in times))
    assert roll_up(chance.randrange(ROWS // 4, ROWS)) < ROWS
    return chance


def _row(chance: random.Random, at: datetime, org_id: Any) -> Any:
    status, code = chance.choice(OUTCOMES)
    vendor, who = chance.choice(["acme", "globex"]), chance.randrange(5)
    return log_row(
        at,
        org_id=org_id,
        user_id=f"user-{who}",
        user_label=f"Person {who}",
        vendor=vendor,
        tool=f"{vendor}_{chance.randrange(4)}",
        source=chance.choice(["mcp", "cli"]),
        status=status,
        error_code=code,
        count=3 if (status, code) == ("denied", "rate_limited") else 1,
        duration_ms=chance.randrange(2_000),
    )


def exported(api: Api, who: str, **query: str) -> list[dict[str, str]]:
    answer = api.send(who, "GET", f"/audit?{urlencode({'format': 'csv', **query})}")
    assert answer.status_code == 200
    return list(csv.DictReader(io.StringIO(body_of(answer).decode(), newline=""), strict=True))


def calls(rows: list[dict[str, str]]) -> int:
    return sum(int(row["count"]) for row in rows if row["status"] in CALLS)


def average_ms(rows: list[dict[str, str]]) -> int:
    took = [int(row["duration_ms"]) for row in rows if row["status"] in {"success", "error"}]
    return round(sum(took) / len(took)) if took else 0


def by(rows: list[dict[str, str]], column: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in rows:
        found[row[column]] += calls([row])
    return +found


@pytest.mark.usefixtures("vendors", "chance")
@pytest.mark.parametrize("period", PERIODS)
@pytest.mark.parametrize("who", ["admin", "other_owner"])
def test_dashboards_count_what_the_export_has(api: Api, who: str, period: tuple[datetime, datetime]) -> None:
    bounds = {name: clock.rfc3339(at) for name, at in zip(("start", "end"), period, strict=True)}
    rows = exported(api, who, **bounds)
    assert len(rows) > 20
    usage = api.get(who, f"/dashboard/usage?{urlencode(bounds)}")
    assert (usage["totalCalls"], usage["avgResponseTimeMs"]) == (calls(rows), average_ms(rows))
    assert usage["errors"] == sum(row["status"] == "error" for row in rows)
    refused = sum(int(row["count"]) for row in rows if row["status"] == "denied")
    assert usage["denied"] + usage["rateLimited"] == refused
    assert {each["vendor"]: each["calls"] for each in usage["byVendor"]} == by(rows, "vendor")
    assert {each["userId"]: each["calls"] for each in usage["byUser"]} == by(rows, "user_id")
    assert usage["bySource"] == {"mcp": 0, "cli": 0, **by(rows, "source")}
    days = Counter[str]()
    for row in rows:
        days[row["timestamp"][:10]] += calls([row])
    assert {each["date"]: each["calls"] for each in usage["byDay"]} == days


@pytest.mark.usefixtures("vendors", "chance")
@pytest.mark.parametrize("who", ["admin", "other_owner"])
def test_each_figure_is_the_export_with_its_filter(api: Api, who: str) -> None:
    bounds = {name: clock.rfc3339(at) for name, at in zip(("start", "end"), PERIODS[2], strict=True)}
    usage = api.get(who, f"/dashboard/usage?{urlencode(bounds)}")
    for each in usage["byUser"]:
        assert calls(exported(api, who, user_id=each["userId"], **bounds)) == each["calls"]
    for source, number in usage["bySource"].items():
        assert calls(exported(api, who, source=source, **bounds)) == number
    vendors = api.get(who, f"/dashboard/vendors?{urlencode(bounds)}")["vendors"]
    assert len(vendors) == 2
    for vendor in vendors:
        mine = exported(api, who, vendor=vendor["vendor"], **bounds)
        assert (calls(mine), average_ms(mine)) == (vendor["totalCalls"], vendor["avgResponseTimeMs"])
        assert vendor["uniqueUsers"] == len(by(mine, "user_id"))
        assert vendor["errors"] == len(exported(api, who, vendor=vendor["vendor"], status="error", **bounds))
        assert len(vendor["topTools"]) == 4
        for tool in vendor["topTools"]:
            assert calls(exported(api, who, tool=tool["tool"], **bounds)) == tool["calls"]

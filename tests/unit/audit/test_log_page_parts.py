"""The parts of the logs' pages: typed names, time presets, and metadata in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine

from audit.models import AdminAuditEntry
from audit.pages import time_range
from audit.pages.facts import MAX_LISTED, Change, facts_of
from audit.pages.people import People
from gateway.lib.errors import Invalid

ANA, OTHER_ANA, BOT = {"user-1": "Ana"}, {"user-2": "ana"}, {"svc:o:c": "Nightly job"}


def test_a_name_that_nobody_shares_stands_for_its_id() -> None:
    people = People(ANA | BOT)
    assert people.listed == ["Ana", "Nightly job"]
    assert people.id_of("Ana") == people.id_of("ana") == people.id_of("user-1") == "user-1"
    assert people.id_of("nightly JOB") == "svc:o:c"
    assert people.text_of("svc:o:c") == "Nightly job"
    assert people.id_of("An") == people.text_of("An") == "An"


def test_people_with_one_name_are_told_apart_by_id() -> None:
    people = People(ANA | OTHER_ANA)
    assert people.listed == ["Ana (user-1)", "ana (user-2)"]
    assert people.id_of("Ana") == "Ana", "no guess"
    assert people.id_of("ana (user-2)") == "user-2"


def test_nobody_can_take_the_place_of_an_id_by_a_name() -> None:
    assert People({**ANA, "user-3": "user-1"}).id_of("user-1") == "user-1"

    hidden = "3e4666bf-d5e5-4aa7-b8ce-cefe41c7568a"
    assert People({"user-3": hidden}).id_of(hidden) == hidden, "of somebody who is not listed"
    assert People({"user-3": "svc:o:c"}).id_of("svc:o:c") == "svc:o:c"


def test_nobody_can_take_the_place_of_a_name_with_its_id() -> None:
    people = People({**ANA, **OTHER_ANA, "user-3": "Ana (user-1)"})
    assert people.listed == ["Ana (user-1) (user-1)", "ana (user-2)", "Ana (user-1) (user-3)"]
    assert [people.id_of(text) for text in people.listed] == ["user-1", "user-2", "user-3"]


@pytest.mark.parametrize(
    ("period", "start"),
    [
        ("1h", "2026-03-10T11:30:15.000Z"),
        ("today", "2026-03-10T00:00:00.000Z"),
        ("7d", "2026-03-03T12:30:15.000Z"),
        ("30d", "2026-02-08T12:30:15.000Z"),
    ],
)
def test_a_preset_is_a_start(period: str, start: str) -> None:
    with time_machine.travel(datetime(2026, 3, 10, 12, 30, 15, tzinfo=UTC), tick=False):
        assert time_range.resolved({"period": period, "tool": "x"}) == {"tool": "x", "start": start}


def test_filters_without_a_preset_stay() -> None:
    assert time_range.resolved({"start": "2026-01-01", "tool": "x"}) == {"start": "2026-01-01", "tool": "x"}


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(Invalid) as refusal:
        time_range.resolved({"period": "1y"})
    assert refusal.value.fields == {"period": ["Use one of: 1h, today, 7d, 30d."]}


@pytest.mark.parametrize(
    ("metadata", "change"),
    [
        ({"role": "admin", "was": "member"}, ("Role", "member", "admin")),
        ({"status": "lapsed", "was": "active"}, ("Status", "active", "lapsed")),
        ({"defaultServerAccess": "all", "was": "none"}, ("Default server access", "none", "all")),
        ({"formerName": "Old"}, ("Name", "Old", "Night shift")),
        ({"formerName": "Old", "name": "New"}, ("Name", "Old", "New")),
        ({"formerTeamId": None, "teamId": "t-1"}, ("Team id", "none", "t-1")),
        ({"vendors": ["a", "b"], "were": []}, ("Vendors", "none", "a, b")),
        ({"vendors": None, "were": ["a"]}, ("Vendors", "a", "all vendors")),
        ({"limit": {"from": 1, "to": 2}}, ("Limit", "1", "2")),
        ({"limit": {"before": True, "after": None}}, ("Limit", "yes", "none")),
    ],
)
def test_a_value_before_and_after(metadata: dict[str, Any], change: tuple[str, str, str]) -> None:
    facts = facts_of(AdminAuditEntry(target_label="Night shift", metadata={**metadata, "email": "a@example.com"}))
    assert facts.changes == [Change(*change)]
    assert facts.others == [("Email", "a@example.com")]


@pytest.mark.parametrize(
    ("metadata", "others"),
    [
        ({}, []),
        ({"was": "alone"}, [("Was", "alone")]),
        ({"former": "x"}, [("Former", "x")]),
        ({"client_id": "c", "maxUses": 2}, [("Client id", "c"), ("Max uses", "2")]),
        ({"added": [], "folded": False}, [("Added", "none"), ("Folded", "no")]),
        ({"part": {"b": 1, "a": "é"}}, [("Part", '{"a": "é", "b": 1}')]),
    ],
)
def test_other_facts_are_a_list(metadata: dict[str, Any], others: list[tuple[str, str]]) -> None:
    facts = facts_of(AdminAuditEntry(metadata=metadata))
    assert (facts.changes, facts.others) == ([], others)


def test_a_long_list_is_cut() -> None:
    facts = facts_of(AdminAuditEntry(metadata={"tools": [f"t{number}" for number in range(MAX_LISTED + 3)]}))
    ((_, text),) = facts.others
    assert text.endswith(f"t{MAX_LISTED - 1} and 3 more")


def test_the_row_itself_is_not_changed() -> None:
    entry = AdminAuditEntry(metadata={"role": "admin", "was": "member"})
    facts_of(entry)
    assert entry.metadata == {"role": "admin", "was": "member"}

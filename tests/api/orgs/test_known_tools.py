"""An organization's rows of a vendor's tools: the first look, the bound on rows, and the record of changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Any

import pytest

from audit.models import AdminAuditEntry
from gateway.lib import clock
from gateway.lib.errors import NotFound
from orgs.models import KnownTool, Organization, ToolSnapshot
from orgs.services import known_tools
from orgs.services.known_tools import KEPT_TOOLS, KEPT_TOOLS_OF_FURTHER_LISTS, record_tools
from orgs.services.tool_approval import Review, approve_shown_tools, approve_tools, fingerprint_of
from orgs.services.tool_change_log import RECORDED_PER_WINDOW, WINDOW
from proxy.protocol.tool_definitions import MAX_TOOLS, approvable_json
from tests.factories.cast import Cast

TEAM = "team:1"


def definitions(names: Iterable[str], description: str = "", **more: Any) -> dict[str, bytes]:
    return {name: approvable_json({"name": name, "description": description or name, **more}) for name in names}


def look(
    organization: Organization,
    *names: str,
    scope: str = "",
    scopes: Collection[str] = ("", TEAM),
    description: str = "",
    **more: Any,
) -> set[str]:
    offered = definitions(names, description, **more)
    return set(
        record_tools(
            organization=organization,
            vendor="acme",
            definitions=offered,
            credential_scope=scope,
            current_scopes=scopes,
        )
    )


def rows(organization: Organization, scope: str = "") -> dict[str, tuple[bool, bool]]:
    """By tool: is it offered, is it approved."""
    found = KnownTool.objects.filter(organization=organization, vendor="acme", credential_scope=scope)
    return {row.tool: (row.is_offered, row.is_approved) for row in found}


def records(organization: Organization) -> list[dict[str, Any]]:
    found = AdminAuditEntry.objects.filter(org_id=organization.id, event_type="vendor.tools_changed")
    return list(found.order_by("timestamp", "id").values_list("metadata", flat=True))


def test_the_first_list_is_approved_and_what_comes_later_is_not(cast: Cast) -> None:
    assert look(cast.org, "a", "b") == set()
    assert look(cast.org, "a", "b", "c") == {"c"}
    assert rows(cast.org) == {"a": (True, True), "b": (True, True), "c": (True, False)}
    assert [each["added"] for each in records(cast.org)] == [["c"]]
    assert look(cast.other_org, "a", "b", "c") == set()


def test_an_empty_first_list_approves_nothing_that_comes_later(cast: Cast) -> None:
    assert look(cast.org) == set()
    assert look(cast.org, "send_keys") == {"send_keys"}
    assert rows(cast.org) == {"send_keys": (True, False)}
    assert [each["added"] for each in records(cast.org)] == [["send_keys"]]
    look(cast.org)
    assert rows(cast.org) == {}, "nothing that was never approved is kept"
    assert look(cast.org, "send_keys") == {"send_keys"}


def test_rows_from_before_snapshots_were_kept_are_a_first_comparison(cast: Cast) -> None:
    look(cast.org, "a")
    ToolSnapshot.objects.all().delete()
    assert look(cast.org, "a", "b") == {"b"}


def test_names_that_change_each_time_leave_no_rows(cast: Cast) -> None:
    look(cast.org, *(f"first_{number}" for number in range(300)))
    for turn in range(6):
        look(cast.org, *(f"tool_{turn}_{number}" for number in range(300)))
        assert KnownTool.objects.filter(organization=cast.org).count() == 600
    assert sum(is_offered for is_offered, _ in rows(cast.org).values()) == 300
    look(cast.org, *(f"first_{number}" for number in range(300)))
    assert set(rows(cast.org).values()) == {(True, True)}, "what was approved is known again"


def test_what_is_gone_for_longest_is_forgotten_first(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_tools, "KEPT_TOOLS", 4)
    look(cast.org, "a", "b")
    look(cast.other_org, "a", "b")
    for names in (("c", "d"), ("e", "f"), ("g",)):
        look(cast.org, *names)
        approve_offered(cast.org)
    assert set(rows(cast.org)) == {"d", "e", "f", "g"}
    assert set(rows(cast.other_org)) == {"a", "b"}


def approve_offered(organization: Organization) -> None:
    found = list(KnownTool.objects.filter(organization=organization))
    review = Review(fingerprint_of(found), frozenset(str(row.pk) for row in found if row.is_offered))
    assert approve_tools(organization=organization, vendor="acme", review=review) is not None


def test_a_tool_that_is_approved_as_gone_leaves_no_row(cast: Cast) -> None:
    look(cast.org, "a", "b")
    look(cast.org, "a")
    assert rows(cast.org)["b"] == (False, False)
    found = list(KnownTool.objects.filter(organization=cast.org))
    review = Review(fingerprint_of(found), frozenset(str(row.pk) for row in found))
    assert approve_shown_tools(actor=cast.user("owner"), organization=cast.org, vendor="acme", review=review) == 1
    assert rows(cast.org) == {"a": (True, True)}
    assert look(cast.org, "a", "b") == {"b"}


def test_limits_hold_two_whole_lists() -> None:
    assert (KEPT_TOOLS, KEPT_TOOLS_OF_FURTHER_LISTS) == (2 * MAX_TOOLS, MAX_TOOLS)


def test_of_many_changes_in_an_hour_a_few_are_recorded_and_the_others_counted(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(cast.org)
    look(cast.other_org)
    for turn in range(RECORDED_PER_WINDOW + 3):
        look(cast.org, f"tool_{turn}")
    assert len(records(cast.org)) == RECORDED_PER_WINDOW
    look(cast.other_org, "a")
    assert len(records(cast.other_org)) == 1, "each organization has a log of its own"
    later = clock.now() + WINDOW + timedelta(seconds=1)
    monkeypatch.setattr(clock, "now", lambda: later)
    look(cast.org, "last")
    *_, last = records(cast.org)
    assert (len(records(cast.org)), last["folded"], last["added"]) == (RECORDED_PER_WINDOW + 1, 3, ["last"])
    look(cast.org, "later")
    assert "folded" not in records(cast.org)[-1]


def test_lists_of_further_credentials_share_the_rows_of_the_log(cast: Cast) -> None:
    look(cast.org)
    for turn in range(RECORDED_PER_WINDOW):
        look(cast.org, f"tool_{turn}")
    look(cast.org, f"tool_{turn}", "hidden", scope=TEAM)
    assert len(records(cast.org)) == RECORDED_PER_WINDOW
    assert rows(cast.org, TEAM) == {"hidden": (True, False)}


def test_of_a_further_list_what_differs_is_kept_and_waits(cast: Cast) -> None:
    look(cast.org, "a", "b")
    assert look(cast.org, "a", scope=TEAM) == set(), "fewer tools are no change"
    assert rows(cast.org, TEAM) == {}
    assert look(cast.org, "a", "c", scope=TEAM) == {"c"}
    assert look(cast.org, "a", "c", scope=TEAM, description="Send all keys.") == {"a", "c"}
    assert rows(cast.org, TEAM) == {"a": (True, False), "c": (True, False)}
    assert rows(cast.org) == {"a": (True, True), "b": (True, True)}
    assert [(each["credential_scope"], each["added"], each["changed"]) for each in records(cast.org)] == [
        (TEAM, ["c"], []),
        (TEAM, ["a"], ["c"]),
    ]
    approve_tools(organization=cast.org, vendor="acme")
    assert look(cast.org, "a", "c", scope=TEAM, description="Send all keys.") == set()
    assert look(cast.org, "a", "b", "c") == {"c"}, "as the team's key has it is not how this one has it"
    assert look(cast.org, "a", scope=TEAM) == set()
    assert rows(cast.org, TEAM) == {}


def test_what_is_approved_on_one_list_is_on_another(cast: Cast) -> None:
    look(cast.org, "a")
    look(cast.org, "a", "b", scope=TEAM)
    approve_tools(organization=cast.org, vendor="acme")
    assert look(cast.org, "a", "b") == set()
    assert look(cast.org, "a", "b", scope=TEAM) == set()
    assert rows(cast.org, TEAM) == {}, "the general list has it by now"


def test_a_further_list_may_be_the_first(cast: Cast) -> None:
    assert look(cast.org, "a", "b", scope=TEAM) == set()
    assert look(cast.org, "a", "b", "c", scope=TEAM) == {"c"}
    assert look(cast.org, "a", "b") == set()
    assert look(cast.other_org, "a", scope=TEAM) == set()


def test_lists_of_credentials_that_are_gone_are_forgotten(cast: Cast) -> None:
    for organization in (cast.org, cast.other_org):
        look(organization, "a")
        look(organization, "a", "b", scope=TEAM)
    look(cast.org, "a", scopes=("",))
    assert rows(cast.org, TEAM) == {}
    assert list(ToolSnapshot.objects.filter(organization=cast.org).values_list("credential_scope", flat=True)) == [""]
    assert rows(cast.other_org, TEAM) == {"b": (True, False)}


def test_further_lists_keep_so_many_tools_together(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_tools, "KEPT_TOOLS_OF_FURTHER_LISTS", 3)
    look(cast.org, "a")
    assert look(cast.org, "b", "c", scope=TEAM) == {"b", "c"}
    assert look(cast.org, "d", "e", scope="team:2", scopes=("", TEAM, "team:2")) == {"d", "e"}
    assert set(rows(cast.org, TEAM)) == {"b", "c"}
    assert set(rows(cast.org, "team:2")) == {"d"}


def texts(organization: Organization, tool: str) -> tuple[str, str]:
    """The stored texts of the definition seen last and of the approved one, as descriptions."""
    row = KnownTool.objects.get(organization=organization, tool=tool)
    kept = (row.seen_definition, row.approved_definition)
    seen, approved = (json.loads(text)["description"] if text else "" for text in kept)
    return seen, approved


def test_a_definition_that_is_as_approved_is_stored_once(cast: Cast) -> None:
    for organization in (cast.org, cast.other_org):
        look(organization, "a", "b", description="First.")
    assert texts(cast.org, "a") == ("First.", "")
    look(cast.org, "a", description="Second.")
    assert texts(cast.org, "a") == ("Second.", "First.")
    assert texts(cast.org, "b") == ("", "First.")
    look(cast.org, "a", description="Third.")
    assert texts(cast.org, "a") == ("Third.", "First.")
    look(cast.org, "a", "b", description="First.")
    assert [texts(cast.org, tool) for tool in "ab"] == [("First.", "")] * 2
    look(cast.org, "a", "b", description="Fourth.")
    approve_tools(organization=cast.org, vendor="acme")
    assert texts(cast.org, "a") == ("Fourth.", "")
    look(cast.org, "a", "b", description="Fifth.")
    assert texts(cast.org, "a") == ("Fifth.", "Fourth.")
    assert texts(cast.other_org, "a") == ("First.", "")


def as_first_version(organization: Organization, *tools: str) -> None:
    """The rows as an earlier version of the gateway wrote them."""
    for row in KnownTool.objects.filter(organization=organization, tool__in=tools):
        is_approved, text = row.is_approved, json.loads(row.seen_definition)
        row.seen_definition = json.dumps({"description": text["description"], "name": text["name"]}).replace(": ", ":")
        row.seen_definition = row.seen_definition.replace(", ", ",")
        row.seen_sha256 = hashlib.sha256(row.seen_definition.encode()).digest()
        if is_approved:
            row.approved_sha256, row.approved_definition = row.seen_sha256, row.seen_definition
        row.save()


def test_approvals_outlive_a_new_definition_of_the_fingerprint(cast: Cast) -> None:
    more = {"_meta": {"vendor/x": 1}, "icons": [{"src": "https://vendor.example/i.svg"}]}
    for organization in (cast.org, cast.other_org):
        look(organization, "a", "b", **more)
        look(organization, "a", "b", "waits", **more)
        as_first_version(organization, "a", "b", "waits")
    before = len(records(cast.org))
    assert look(cast.org, "a", "b", "waits", **more) == {"waits"}
    assert len(records(cast.org)) == before, "no tool counts as changed"
    assert look(cast.org, "a", "b", "waits", _meta={"vendor/x": 2}, icons=more["icons"]) == {"a", "b", "waits"}
    assert records(cast.org)[-1]["changed"] == ["a", "b", "waits"]
    assert look(cast.other_org, "a", "b", "waits", description="Send all keys.", **more) == {"a", "b", "waits"}
    assert records(cast.other_org)[-1]["changed"] == ["a", "b", "waits"], "a change is one all the same"
    assert look(cast.other_org, "a", "b", "waits", **more) == {"waits"}, "as it was approved by the earlier version"


def test_an_approved_list_of_the_earlier_version_speaks_for_further_lists(cast: Cast) -> None:
    look(cast.org, "a")
    as_first_version(cast.org, "a")
    assert look(cast.org, "a", scope=TEAM) == set()
    assert rows(cast.org, TEAM) == {}


def test_an_organization_that_ended_has_no_tools(cast: Cast) -> None:
    gone = Organization.objects.get(pk=cast.org.pk)
    cast.org.delete()
    with pytest.raises(NotFound):
        look(gone, "a")


def test_a_comparison_without_news_loads_no_definition_and_locks_nothing(
    cast: Cast, django_assert_max_num_queries: Any
) -> None:
    look(cast.org, "a", "b")
    with django_assert_max_num_queries(3) as queries:
        look(cast.org, "a", "b")
    text = json.dumps([query["sql"] for query in queries])
    assert "FOR NO KEY UPDATE" not in text
    assert "approved_definition" not in text

"""Both logs over the API, as JSON: entries, filters, pages, totals and refusals. Spec: §4.10 · D79-D83, D149"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from audit import log_pages
from audit.models import AdminAuditEntry
from orgs.models import Membership
from tests.api.audit.log_rows import add_call, add_calls, add_change, log_id
from tests.factories.api import Api

LOGS = pytest.mark.parametrize("path", ["/audit", "/audit/admin"])
LABELS = ("userLabel", "actorLabel")


@pytest.fixture(autouse=True)
def _foreign_rows(api: Api) -> None:
    """The same facts in the other organization, at the same times."""
    for minutes in (-1, 0, 1):
        add_call(api.cast.other_org.id, minutes=minutes, user_label="Foreign")
        add_change(api.cast.other_org.id, minutes=minutes, actor_label="Foreign")


def ask(api: Api, path: str, query: str = "", who: str = "admin") -> dict[str, Any]:
    found: dict[str, Any] = api.get(who, f"{path}?{query}")
    assert "Foreign" not in json.dumps(found)
    assert all(entry["orgId"] == str(api.cast.org.id) for entry in found["entries"])
    return found


def tools(api: Api, query: str) -> list[str]:
    return [entry["tool"] for entry in ask(api, "/audit", query)["entries"]]


def actors(api: Api, query: str) -> list[str]:
    return [entry["actorLabel"] for entry in ask(api, "/audit/admin", query)["entries"]]


def test_a_call_has_the_documented_members(api: Api) -> None:
    row = add_call(
        api.cast.org.id,
        status="error",
        error_code="vendor_timeout",
        duration_ms=30,
        vendor_ms=20,
        credential_scope="team",
        credential_name="Support",
        client_id="client-1",
        client_name="Some app",
        ip_address="192.0.2.1",
        request_bytes=10,
        response_bytes=20,
    )
    found = ask(api, "/audit")
    assert {name: found[name] for name in found if name != "entries"} == {"total": 1, "limit": 50, "offset": 0}
    assert found["entries"] == [
        {
            "id": str(row.id),
            "timestamp": "2026-03-10T12:00:00.000Z",
            "orgId": str(api.cast.org.id),
            "userId": "user-1",
            "userLabel": "Ana",
            "vendor": "acme",
            "tool": "acme_list",
            "kind": "tool",
            "item": None,
            "source": "mcp",
            "status": "error",
            "errorCode": "vendor_timeout",
            "durationMs": 30,
            "vendorMs": 20,
            "credential": {"scope": "team", "name": "Support"},
            "cached": False,
            "clientId": "client-1",
            "clientName": "Some app",
            "ipAddress": "192.0.2.1",
            "requestId": "r-1",
            "requestBytes": 10,
            "responseBytes": 20,
            "count": 1,
        }
    ]


def test_absent_facts_of_a_call_are_null_and_floods_have_a_count(api: Api) -> None:
    add_call(api.cast.org.id, status="denied", error_code="rate_limited", count=240)
    add_call(api.cast.org.id, minutes=1)
    fine, flood = ask(api, "/audit")["entries"]
    assert (fine["errorCode"], fine["credential"], fine["clientName"], fine["count"]) == (None, None, None, 1)
    assert (flood["errorCode"], flood["count"]) == ("rate_limited", 240)


def test_a_change_has_the_documented_members(api: Api) -> None:
    metadata = {"role": "admin", "vendors": ["acme"], "count": 2, "none": None}
    row = add_change(api.cast.org.id, metadata=metadata, ip_address="192.0.2.1", request_id="r-1")
    expected = {
        "id": str(row.id),
        "timestamp": "2026-03-10T12:00:00.000Z",
        "orgId": str(api.cast.org.id),
        "eventType": "member.removed",
        "actorId": "user-1",
        "actorLabel": "Ana",
        "targetId": "user-2",
        "targetLabel": "Ben",
        "metadata": metadata,
        "ipAddress": "192.0.2.1",
        "requestId": "r-1",
    }
    assert ask(api, "/audit/admin")["entries"] == [expected]


def test_a_change_without_a_target_names_none(api: Api) -> None:
    add_change(api.cast.org.id, actor_id="system", actor_label="System (health monitor)", target_id="", target_label="")
    (entry,) = ask(api, "/audit/admin")["entries"]
    assert {"targetId", "targetLabel"} & set(entry) == set()
    assert (entry["actorId"], entry["actorLabel"]) == ("system", "System (health monitor)")


def test_changes_that_were_made_are_in_the_log_with_their_names(api: Api) -> None:
    member = api.cast.user("member")
    removed = api.send("owner", "DELETE", f"/orgs/{{org}}/members/{member.id}")
    assert removed.status_code == 204
    (entry,) = ask(api, "/audit/admin")["entries"]
    assert (entry["eventType"], entry["actorLabel"], entry["targetLabel"]) == ("member.removed", "Owner", "Member")
    assert (entry["actorId"], entry["targetId"]) == (str(api.cast.user("owner").id), str(member.id))
    assert entry["requestId"] == removed["X-Request-Id"]


@pytest.fixture
def calls(api: Api) -> None:
    """Five, newest last; each differs from the first in some facts."""
    org_id = api.cast.org.id
    add_call(org_id, minutes=-60 * 24, tool="yesterday", user_id="user-2", vendor="globex", source="cli")
    add_call(org_id, minutes=1, tool="one", request_id="r-one")
    add_call(org_id, minutes=2, tool="two", user_id="user-2")
    add_call(org_id, minutes=3, tool="three", user_id="user-2", vendor="globex", status="error")
    add_call(org_id, minutes=4, tool="four", vendor="globex", source="cli")


@pytest.mark.usefixtures("calls")
def test_calls_of_each_kind(api: Api) -> None:
    for org_id in (api.cast.org.id, api.cast.other_org.id):
        add_call(org_id, minutes=5, tool="", kind="resource", item="test://one")
        add_call(org_id, minutes=6, tool="", kind="prompt", item="greet", user_id="user-2")

    def items(query: str) -> list[str | None]:
        return [entry["item"] for entry in ask(api, "/audit", query)["entries"]]

    assert items("kind=resource") == items("item=test://one") == ["test://one"]
    assert items("kind=prompt&user_id=user-2&status=success") == ["greet"]
    assert items("kind=completion") == items("kind=prompt&item=test://one") == items("kind=tool&item=greet") == []
    assert tools(api, "kind=tool&start=2026-03-10") == "four three two one".split()
    assert [entry["kind"] for entry in ask(api, "/audit", "limit=2")["entries"]] == ["prompt", "resource"]
    assert api.refused("admin", "GET", "/audit?kind=tools")[0] == 400


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "four three two one yesterday"),
        ("user_id=user-2", "three two yesterday"),
        ("vendor=globex", "four three yesterday"),
        ("vendor=unknown", ""),
        ("tool=two", "two"),
        ("source=cli", "four yesterday"),
        ("kind=tool", "four three two one yesterday"),
        ("status=error", "three"),
        ("request_id=r-one", "one"),
        ("start=2026-03-10", "four three two one"),
        ("end=2026-03-09", "yesterday"),
        ("start=2026-03-10T12:02:00Z&end=2026-03-10T12:03:00Z", "three two"),
        ("start=2026-03-10T14:02:00%2B02:00", "four three two"),
        ("user_id=user-2&vendor=globex", "three yesterday"),
        ("user_id=user-2&start=2026-03-10", "three two"),
        ("vendor=globex&end=2026-03-10T12:03:00Z", "three yesterday"),
        ("vendor=globex&source=cli&start=2026-03-10", "four"),
        ("user_id=&vendor=&start=&end=&format=&limit=&offset=&cursor=", "four three two one yesterday"),
        ("unheard_of=1", "four three two one yesterday"),
    ],
)
def test_filters_of_calls(api: Api, query: str, expected: str) -> None:
    assert tools(api, query) == expected.split()
    assert ask(api, "/audit", query)["total"] == len(expected.split())


@pytest.fixture
def changes(api: Api) -> None:
    """Four, newest last."""
    org_id = api.cast.org.id
    add_change(org_id, minutes=-60 * 24, actor_label="yesterday", actor_id="user-9")
    add_change(org_id, minutes=1, actor_label="one", event_type="team.created", target_id="team-1")
    add_change(org_id, minutes=2, actor_label="two", event_type="team.created", actor_id="user-9")
    add_change(org_id, minutes=3, actor_label="three", target_id="team-1")


@pytest.mark.usefixtures("changes")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "three two one yesterday"),
        ("event_type=team.created", "two one"),
        ("event_type=no.such_event", ""),
        ("event_type=TEAM.CREATED", ""),
        ("actor_id=user-9", "two yesterday"),
        ("target_id=team-1", "three one"),
        ("start=2026-03-10&end=2026-03-10T12:02:00Z", "two one"),
        ("event_type=team.created&actor_id=user-9", "two"),
        ("actor_id=user-9&end=2026-03-09", "yesterday"),
        ("event_type=team.created&target_id=team-1", "one"),
        ("event_type=team.created&start=2026-03-11", ""),
        ("user_id=nobody&vendor=none", "three two one yesterday"),
    ],
)
def test_filters_of_changes(api: Api, query: str, expected: str) -> None:
    assert actors(api, query) == expected.split()
    assert ask(api, "/audit/admin", query)["total"] == len(expected.split())


@LOGS
def test_an_empty_log_is_an_empty_list(api: Api, path: str) -> None:
    assert ask(api, path) == {"entries": [], "total": 0, "limit": 50, "offset": 0}


def test_pages_by_offset(api: Api) -> None:
    add_calls(api.cast.org.id, 7)
    seen = []
    for offset in (0, 3, 6):
        found = ask(api, "/audit", f"limit=3&offset={offset}")
        assert (found["total"], found["limit"], found["offset"]) == (7, 3, offset)
        assert ("nextCursor" in found) == (offset < 6)
        seen += [entry["requestId"] for entry in found["entries"]]
    assert seen == [f"r-{number}" for number in range(7)]
    assert ask(api, "/audit", "offset=7")["entries"] == []
    assert ask(api, "/audit", "offset=100000")["entries"] == []


@pytest.mark.parametrize("rows", [6, 7])
def test_pages_by_cursor_are_stable_while_rows_arrive(api: Api, rows: int) -> None:
    add_calls(api.cast.org.id, rows)
    seen, query = [], "limit=3"
    for newer in range(1, 10):
        found = ask(api, "/audit", query)
        assert found["total"] == rows + newer - 1
        seen += [entry["requestId"] for entry in found["entries"]]
        add_call(api.cast.org.id, minutes=newer)
        if "nextCursor" not in found:
            break
        query = f"limit=3&cursor={found['nextCursor']}"
    assert seen == [f"r-{number}" for number in range(rows)]


def test_rows_of_one_millisecond_have_an_order(api: Api) -> None:
    at = add_call(api.cast.org.id, minutes=0).timestamp
    for number in range(1, 5):
        add_call(api.cast.org.id, id=log_id(at), tool=f"t-{number}")
    first = ask(api, "/audit", "limit=2")
    second = ask(api, "/audit", f"limit=2&cursor={first['nextCursor']}")
    shown = [entry["tool"] for entry in first["entries"] + second["entries"]]
    assert shown == ["t-4", "t-3", "t-2", "t-1"]


def test_a_cursor_opens_no_other_organization(api: Api) -> None:
    foreign = add_call(api.cast.other_org.id, minutes=30, user_label="Foreign")
    own = add_call(api.cast.org.id, minutes=29)
    found = ask(api, "/audit", f"cursor={foreign.id}")
    assert [entry["id"] for entry in found["entries"]] == [str(own.id)]


@LOGS
@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("limit=500", 500),
        ("limit=501", 500),
        ("limit=1e9", 500),
        ("limit=1000000000", 500),
        (f"limit={'9' * 200}", 500),
    ],
)
def test_large_limits_are_clamped(api: Api, path: str, query: str, shown: int) -> None:
    assert ask(api, path, query)["limit"] == shown


def test_a_clamped_page_has_500_entries(api: Api) -> None:
    add_calls(api.cast.org.id, 501)
    found = ask(api, "/audit", "limit=1000")
    assert (len(found["entries"]), found["total"]) == (500, 501)
    assert len(ask(api, "/audit")["entries"]) == 50


BAD = {
    "limit=-1": ("invalid", "limit"),
    "limit=0": ("invalid", "limit"),
    "limit=1.5": ("invalid", "limit"),
    "limit=ten": ("invalid", "limit"),
    "limit=１": ("invalid", "limit"),
    "offset=-1": ("invalid", "offset"),
    "offset=1.0": ("invalid", "offset"),
    "offset=100001": ("narrow_the_range", None),
    "offset=1e9": ("narrow_the_range", None),
    "cursor=1": ("invalid", "cursor"),
    "cursor=' OR 1=1": ("invalid", "cursor"),
    "start=2026-02-01&end=2026-01-31": ("invalid", "start"),
    "start=2026-02-01T00:00:01Z&end=2026-02-01T00:00:00Z": ("invalid", "start"),
    "start=yesterday": ("invalid", "start"),
    "end=2026-02-30": ("invalid", "end"),
    "format=xml": ("invalid", "format"),
    "format=CSV": ("invalid", "format"),
    "format=csv&limit=0": ("invalid", "limit"),
    "format=csv&offset=100001": ("narrow_the_range", None),
}


@LOGS
@pytest.mark.parametrize("query", BAD)
def test_bad_values_are_refused_in_the_documented_shape(api: Api, path: str, query: str) -> None:
    target = f"{path}?{quote(query, safe='=&')}"
    code, field = BAD[query]
    assert api.refused("admin", "GET", target) == (400, code)
    found = json.loads(api.send("admin", "GET", target).content)
    assert set(found.get("fields", {})) == ({field} if field else set())


@pytest.mark.parametrize("name", ["user_id", "vendor", "tool", "request_id", "source", "status", "kind", "item"])
def test_texts_that_no_call_holds_are_refused(api: Api, name: str) -> None:
    assert api.faults("admin", "GET", f"/audit?{name}=a%00b", None) == {name}


@pytest.mark.parametrize("name", ["event_type", "actor_id", "target_id"])
def test_texts_that_no_change_holds_are_refused(api: Api, name: str) -> None:
    assert api.faults("admin", "GET", f"/audit/admin?{name}=a%00b", None) == {name}


@LOGS
@pytest.mark.parametrize("as_csv", ["", "&format=csv"])
def test_the_organization_is_chosen_and_others_are_not_there(api: Api, path: str, as_csv: str) -> None:
    own, other = api.cast.org.id, api.cast.other_org.id
    assert api.send("admin", "GET", f"{path}?org_id={own}{as_csv}").status_code == 200
    for named in (other, "not-an-id", "", f"{own}&org_id={other}", "00000000-0000-4000-8000-000000000000"):
        assert api.refused("admin", "GET", f"{path}?org_id={named}{as_csv}") == (404, "not_found")
    assert api.refused("stranger", "GET", f"{path}?{as_csv}") == (404, "not_found"), "no organization at all"
    assert api.refused("member", "GET", f"{path}?{as_csv}") == (403, "forbidden")
    assert api.refused("nobody", "GET", f"{path}?{as_csv}") == (401, "unauthenticated")


@LOGS
def test_without_a_name_it_is_the_primary_organization(api: Api, path: str) -> None:
    admin = api.cast.user("admin")
    joined = Membership.objects.get(user=admin).joined_at
    later = Membership.objects.create(organization=api.cast.other_org, user=admin, role="admin")
    Membership.objects.filter(pk=later.pk).update(joined_at=joined.replace(year=joined.year + 1))
    assert ask(api, path)["total"] == 0
    chosen = api.get("admin", f"{path}?org_id={api.cast.other_org.id}")
    assert {entry.get(name) for entry in chosen["entries"] for name in LABELS} == {"Foreign", None}


@LOGS
@pytest.mark.parametrize("query", ["", "format=csv", "limit=-1", "format=xml"])
@pytest.mark.usefixtures("lapsed")
def test_a_lapsed_plan_is_told_before_bad_values(api: Api, path: str, query: str) -> None:
    assert api.refused("admin", "GET", f"{path}?{query}") == (402, "subscription_required")
    assert api.refused("member", "GET", f"{path}?{query}") == (403, "forbidden")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """Totals are exact up to five."""
    monkeypatch.setattr(log_pages, "MAX_EXACT_TOTAL", 5)
    return 5


def test_the_total_is_exact_up_to_the_limit_and_then_an_estimate(api: Api, few: int) -> None:
    add_calls(api.cast.org.id, few)
    exact = ask(api, "/audit", "limit=2")
    assert (exact["total"], "totalIsEstimate" in exact) == (few, False)
    add_call(api.cast.org.id, minutes=1)
    more = ask(api, "/audit", "limit=2")
    assert more["totalIsEstimate"] is True
    assert more["total"] >= few + 1
    narrow = ask(api, "/audit", "start=2026-03-10T12:01:00Z")
    assert (narrow["total"], "totalIsEstimate" in narrow) == (1, False)


@pytest.mark.usefixtures("few")
def test_the_total_of_changes_becomes_an_estimate_too(api: Api) -> None:
    for minutes in range(10):
        add_change(api.cast.org.id, minutes=minutes)
    found = ask(api, "/audit/admin", "limit=2")
    assert found["totalIsEstimate"] is True
    assert found["total"] >= 6
    assert AdminAuditEntry.objects.filter(org_id=api.cast.org.id).count() == 10


def test_a_member_filters_their_own_calls(api: Api) -> None:
    mine = str(api.cast.user("member").id)
    for user_id, tool in ((mine, "acme_list"), (mine, "acme_get"), ("user-1", "acme_get")):
        add_call(api.cast.org.id, user_id=user_id, tool=tool)
    for query in ("tool=acme_get", "tool=acme_get&user_id=user-1", "tool=acme_list&tool=acme_get"):
        found = ask(api, "/audit/mine", query, who="member")
        assert [(entry["userId"], entry["tool"]) for entry in found["entries"]] == [(mine, "acme_get")]
    assert ask(api, "/audit/mine", "vendor=other", who="member")["total"] == 0

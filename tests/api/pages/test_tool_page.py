"""The page of one tool: a run is a call like any other, with the reader's own rights."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import LazySettings
from django.urls import reverse

from audit.models import RequestAuditEntry
from credentials.credential_scope import CredentialScope
from gateway.coordination.rules import Rule
from gateway.web import form_idempotency
from orgs.models import KnownTool, Membership, Team, TeamMembership, ToolAllowlist
from proxy.control_plane.vendor_request_limiter import vendor_requests
from tests.api.pages.conftest import text
from tests.factories.cast import Cast
from tests.factories.live_vendor import vendor_in_thread
from tests.factories.tenant import connect, make_connected_tenant
from tests.fakes.vendor import FakeVendor


class Runner:
    def __init__(self, cast: Cast, vendor: FakeVendor) -> None:
        self.cast, self.vendor = cast, vendor

    def address(self, tool: str = "fake_list", vendor: str = "fake") -> str:
        return reverse("proxy_pages:tool", args=[self.cast.org.id, vendor, tool])

    def get(self, who: str, tool: str = "fake_list") -> Any:
        return self.cast.client(who).get(self.address(tool))

    def run(self, who: str, tool: str = "fake_list", **form: str) -> Any:
        """As a browser sends the form."""
        user = self.cast.people.get(who) or self.cast.user("stranger")
        key = form_idempotency.new_key(SimpleNamespace(user=user))  # type: ignore[arg-type]
        return self.cast.client(who).post(self.address(tool), {"form_key": key, **form})

    def seen(self, tool: str = "fake_list") -> dict[str, Any]:
        """The last call that the vendor got."""
        [params] = [each["params"] for each in self.vendor.bodies if each["method"] == "tools/call"]
        assert params["name"] == tool
        return dict(params["arguments"])

    @property
    def outcomes(self) -> list[tuple[str, str]]:
        return list(RequestAuditEntry.objects.order_by("id").values_list("status", "error_code"))

    @property
    def calls(self) -> int:
        return self.vendor.seen["tools/call"]


@pytest.fixture
def runner(committed_cast: Cast) -> Iterator[Runner]:
    """`fake` is connected in the first organization, and its tools were listed."""
    with vendor_in_thread() as vendor:
        committed_cast.org.default_server_access = "all"
        committed_cast.org.save()
        make_connected_tenant(committed_cast.org, committed_cast.user("owner"), vendor.url)
        committed_cast.client("owner").post(
            reverse("proxy_pages:tool-access", args=[committed_cast.org.id, "fake"]), {"action": "discover"}
        )
        yield Runner(committed_cast, vendor)


def test_a_run_without_arguments_is_a_call_with_its_row(runner: Runner) -> None:
    page = runner.run("owner")
    assert page.status_code == 200
    assert "The tool responded" in text(page)
    [row] = RequestAuditEntry.objects.all()
    assert (row.org_id, row.user_id, row.user_label) == (
        runner.cast.org.id,
        str(runner.cast.user("owner").id),
        "Owner",
    )
    assert (row.vendor, row.tool, row.source, row.status, row.error_code) == ("fake", "fake_list", "mcp", "success", "")
    assert (row.client_name, row.client_id) == ("Tool runner", "")
    assert (row.credential_scope, row.ip_address) == ("organization", "127.0.0.1")
    assert row.request_id == page.headers["X-Request-Id"]
    assert runner.calls == 1


def test_arguments_reach_the_vendor_from_the_form_and_from_json(runner: Runner) -> None:
    assert "The tool responded" in text(runner.run("owner", **{"arg.site": "berlin"}))
    assert runner.seen() == {"site": "berlin"}
    runner.vendor.bodies.clear()
    page = runner.run("owner", mode="json", json='{"site": "osaka", "deep": {"a": [1]}}')
    assert runner.seen() == {"site": "osaka", "deep": {"a": [1]}}
    assert 'value="osaka"' in text(page)
    assert "osaka" not in page.request["QUERY_STRING"]
    assert "$GATEWAY_KEY" in text(page)


def test_the_tools_error_is_shown_and_recorded(runner: Runner) -> None:
    page = runner.run("owner", "fake_fail")
    assert "The tool reported an error" in text(page)
    assert runner.outcomes == [("error", "tool_error")]


def test_a_tool_that_may_write_asks_first(runner: Runner) -> None:
    page = runner.run("owner", "fake_write")
    assert (page.status_code, runner.calls, runner.outcomes) == (422, 0, [])
    assert "Confirm that the tool may change data" in text(page)
    assert "The tool responded" in text(runner.run("owner", "fake_write", confirm="1"))
    assert (runner.calls, runner.outcomes) == (1, [("success", "")])


@pytest.mark.parametrize("json", ["[1]", "{", '{"site": 7}'])
def test_bad_arguments_are_not_sent(runner: Runner, json: str) -> None:
    page = runner.run("owner", mode="json", json=json)
    assert (page.status_code, runner.calls, runner.outcomes) == (422, 0, [])
    assert "Nothing was sent" in text(page)


def test_a_form_runs_once(runner: Runner) -> None:
    key = form_idempotency.new_key(SimpleNamespace(user=runner.cast.user("owner")))  # type: ignore[arg-type]
    browser = runner.cast.client("owner")
    answers = [browser.post(runner.address(), {"form_key": key}).status_code for _ in range(2)]
    assert (answers, runner.calls) == ([200, 409], 1)
    assert browser.post(runner.address(), {"form_key": "forged"}).status_code == 409


def test_a_member_without_access_is_refused_with_a_row(runner: Runner) -> None:
    runner.cast.org.default_server_access = "none"
    runner.cast.org.save()
    shown = text(runner.get("member"))
    assert "Member has no access to Fake" in shown
    assert "List things." not in shown
    page = runner.run("member")
    assert "Call denied" in text(page)
    assert f"/orgs/{runner.cast.org.id}/access-requests?vendor=fake" in text(page)
    assert (runner.calls, runner.outcomes) == (0, [("denied", "no_server_access")])


def test_a_tool_off_the_list_is_refused_with_a_row(runner: Runner) -> None:
    ToolAllowlist.objects.create(organization=runner.cast.org, vendor="fake", role="member", tools=["fake_fail"])
    page = runner.run("member")
    assert "The role member isn&#x27;t allowed to call" in text(page)
    assert runner.outcomes == [("denied", "tool_not_allowed")]
    assert "The tool responded" in text(runner.run("owner"))


@pytest.mark.parametrize("who", ["other_owner", "stranger", "nobody"])
def test_other_people_reach_nothing(runner: Runner, who: str) -> None:
    for answer in (runner.get(who), runner.run(who)):
        assert answer.status_code == (302 if who == "nobody" else 404)
    assert (runner.calls, runner.outcomes) == (0, [])


def test_the_other_organization_has_no_such_tool(runner: Runner) -> None:
    theirs = reverse("proxy_pages:tool", args=[runner.cast.other_org.id, "fake", "fake_list"])
    assert runner.cast.client("other_owner").get(theirs).status_code == 404
    # A list that is left from earlier credentials gives no call.
    row = KnownTool.objects.get(tool="fake_list")
    row.pk, row.organization = None, runner.cast.other_org
    row.save()
    key = form_idempotency.new_key(SimpleNamespace(user=runner.cast.user("other_owner")))  # type: ignore[arg-type]
    page = runner.cast.client("other_owner").post(theirs, {"form_key": key})
    assert "Fake is not connected" in text(page)
    assert (runner.calls, runner.outcomes) == (0, [("denied", "no_credentials")])


@pytest.mark.parametrize(("vendor", "tool"), [("fake", "unheard"), ("unheard", "fake_list")])
def test_an_unknown_tool_or_vendor_is_not_found(runner: Runner, vendor: str, tool: str) -> None:
    assert runner.cast.client("owner").get(runner.address(tool, vendor)).status_code == 404


@pytest.mark.usefixtures("lapsed")
def test_a_lapsed_plan_stops_no_call(runner: Runner) -> None:
    assert "The tool responded" in text(runner.run("owner"))
    assert runner.outcomes == [("success", "")]


def test_a_run_counts_toward_the_limit(runner: Runner, settings: LazySettings) -> None:
    settings.TOOL_CALLS = Rule("runs-of-a-test", limit=1, window_s=3600)
    runner.run("owner")
    page = runner.run("owner")
    assert "reached your limit of calls" in text(page)
    assert runner.calls == 1
    assert sorted(runner.outcomes) == [("denied", "rate_limited"), ("success", "")]


def test_a_vendor_that_is_down_is_a_fault_in_words(runner: Runner) -> None:
    runner.vendor.status = 500
    page = runner.run("owner")
    assert page.status_code == 200
    assert "Fake can’t be reached" in text(page) or "Fake sent an answer" in text(page)
    [(status, _)] = runner.outcomes
    assert status == "error"


def test_a_rejected_credential_is_named(runner: Runner) -> None:
    runner.vendor.api_key = "another-key"
    assert "Fake rejected the credentials" in text(runner.run("owner"))
    assert runner.outcomes == [("error", "vendor_rejected_credentials")]


def test_a_removed_person_runs_nothing(runner: Runner) -> None:
    Membership.objects.filter(user=runner.cast.user("member")).delete()
    assert runner.run("member").status_code == 404
    assert runner.outcomes == []


def test_more_runs_than_places_are_refused_at_once(runner: Runner) -> None:
    places = [vendor_requests.slot(runner.cast.org.id) for _ in range(2)]
    for place in places:
        place.__enter__()
    try:
        page = runner.run("owner")
    finally:
        for place in places:
            place.__exit__(None, None, None)
    assert (page.status_code, page.headers["Retry-After"], runner.calls) == (429, "5", 0)


def test_a_row_of_the_log_leads_to_the_tool(runner: Runner) -> None:
    runner.run("owner")
    owner, log = runner.cast.client("owner"), reverse("audit_pages:request-log", args=[runner.cast.org.id])
    (row,) = owner.get(log).context["entries"]
    details = text(owner.get(log, {"entry": str(row.id)}, headers={"HX-Request": "true"}))
    assert f'href="{runner.address()}?from=log"' in details
    page = runner.cast.client("owner").get(f"{runner.address()}?from=log")
    assert "keep arguments, so enter them again" in text(page)


def test_a_tool_of_a_teams_credential_is_found_by_the_team_and_by_admins(runner: Runner) -> None:
    org, owner = runner.cast.org, runner.cast.user("owner")
    team = Team.objects.create(organization=org, name="Night shift")
    connect(org, owner, scope=CredentialScope.TEAM, more={"team": team})
    KnownTool.objects.create(
        organization=org, vendor="fake", tool="night_list", credential_scope=f"team:{team.pk}", seen_sha256=b"1"
    )
    assert runner.get("admin", "night_list").status_code == 200
    assert runner.get("member", "night_list").status_code == 404
    assert runner.run("member", "night_list").status_code == 404
    member = Membership.objects.get(organization=org, user=runner.cast.user("member"))
    TeamMembership.objects.create(team=team, membership=member)
    assert runner.get("member", "night_list").status_code == 200

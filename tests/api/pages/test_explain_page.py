"""The page that explains a call says what the command says, and tells nobody about others."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import timedelta
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from gateway.coordination import backend
from gateway.coordination.rules import Rule
from gateway.coordination.sqlite_store import SQLiteStore
from gateway.lib import clock
from oauth_ext.services.service_client_vendors import replace_client_vendors
from orgs.models import KnownTool, Membership, ServerAccess
from proxy.vendors.shared_circuits import SharedCircuit, publish
from tests.api.audit.rows import add_row
from tests.api.pages.conftest import INERT, SCRIPT, Site, text
from tests.factories.credentials import make_service_client
from tests.factories.tenant import connect, load_vendor, restrict_tools

TOOL = "fake_list"


@pytest.fixture
def connected(site: Site) -> Site:
    connect(site.cast.org, site.cast.user("owner"))
    return site


def ask(site: Site, by: str, who: str = "", tool: str = TOOL) -> Any:
    return site.cast.client(by).get(site.path("proxy_pages:explain"), {"who": who, "tool": tool})


def command_lines(site: Site, subject: str, tool: str = TOOL) -> list[str]:
    out = StringIO()
    with suppress(CommandError):  # the command raises it when a step fails
        call_command("explain_access", subject, tool, "--org", str(site.cast.org.id), stdout=out)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("who", ["owner", "member"])
def test_it_says_what_the_command_says(connected: Site, who: str, allowed: bool) -> None:
    restrict_tools(connected.cast.org, *([TOOL] if allowed else []), role="owner")
    person = connected.cast.user(who)
    page = ask(connected, "admin", str(person.id))
    steps = page.context["explanation"].steps
    lines = [f"{'ok  ' if step.passed else 'DENY'} {step.name}: {step.detail}" for step in steps]
    said = command_lines(connected, str(person.id))
    assert [line for line in lines if "quota" not in line] == [line for line in said if "quota" not in line]
    assert len(lines) == len(said)
    for step in steps:
        assert step.detail in unescape(text(page))
        assert step.remedy in unescape(text(page))
    failing = page.context["explanation"].failing
    expected = {"member": "grant", "owner": None if allowed else "allowlist"}[who]
    assert (failing.name if failing else None) == expected
    assert (" denied</h2>" in text(page)) is (failing is not None)


def test_a_call_that_an_open_circuit_holds_back_is_not_called_refused(
    connected: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SQLiteStore(tmp_path / "health.sqlite3", backend.new_value)
    monkeypatch.setattr(backend, "current", lambda: store)
    now = clock.now()
    for until, words in ((now + timedelta(seconds=30), "</code> delayed<"), (now, "</code> allowed<")):
        publish(store, "fake", SharedCircuit(5, now, until))
        found = text(ask(connected, "admin", "owner@example.com"))
        assert words in found
        assert "and fail" not in found


def test_members_see_themselves_and_nobody_else(connected: Site) -> None:
    member = connected.cast.user("member")
    for who in ("", str(member.id), "member@example.com", "Member@Example.com"):
        page = ask(connected, "member", who)
        assert page.status_code == 200
        assert page.context["explanation"].failing.name == "grant"
    form = text(ask(connected, "member", tool=""))
    assert "owner@example.com" not in form
    assert 'name="who"' not in form
    for other in (str(connected.cast.user("owner").id), "owner@example.com", connected.tenant.client.client_id, "x"):
        assert ask(connected, "member", other).status_code == 403


def test_admins_name_people_and_service_clients(connected: Site) -> None:
    client = connected.tenant.client
    for who in ("owner@example.com", "OWNER@example.com", str(connected.cast.user("owner").id)):
        assert (
            ask(connected, "admin", who).context["explanation"].steps[0].detail.startswith("Owner is an owner of Acme")
        )
    for who in (client.client_id, str(client.id), client.subject):
        found = ask(connected, "admin", who).context["explanation"].steps[0].detail
        assert found.startswith("build bot is an agent of Acme")
        steps = ask(connected, "admin", who).context["explanation"].steps
        (access,) = [step.detail for step in steps if step.name == "grant"]
        assert access == "build bot can use Fake: the agent isn’t limited to chosen vendors."
    form = text(ask(connected, "admin", tool=""))
    assert '<option value="member@example.com">Member</option>' in form
    assert client.client_id in form


def test_subjects_of_another_organization_are_nobody(connected: Site) -> None:
    foreign = make_service_client(connected.cast.other_org)
    theirs = connected.cast.user("other_owner")
    for who in (
        theirs.email,
        str(theirs.id),
        foreign.client_id,
        str(foreign.id),
        foreign.subject,
        "nobody@example.com",
    ):
        page = ask(connected, "owner", who)
        assert page.status_code == 200
        [step] = page.context["explanation"].steps
        assert (step.name, step.passed) == ("token", False)
        assert step.detail == "No member or agent matches."
        assert "Globex" not in text(page)


def test_an_address_of_two_members_is_a_choice(connected: Site) -> None:
    twin = connected.cast.user("stranger")
    twin.email = "member@example.com"
    twin.save()
    Membership.objects.create(organization=connected.cast.org, user=twin, role="member")
    page = ask(connected, "owner", "member@example.com")
    assert page.context["explanation"] is None
    assert len(page.context["asked"].choices) == 2
    for url, _, _ in page.context["asked"].choices:
        chosen = connected.owner().get(connected.path("proxy_pages:explain") + url)
        assert chosen.context["explanation"].steps[0].passed


def test_part_of_a_name_finds_a_person_or_an_agent(connected: Site) -> None:
    for who, label in (("memb", "Member"), ("build", "build bot")):
        assert ask(connected, "admin", who).context["explanation"].steps[0].detail.startswith(f"{label} is ")


def test_suggestions_are_of_this_organization_and_for_admins(connected: Site) -> None:
    make_service_client(connected.cast.other_org, name="foreign bot")
    own, other = connected.cast.org, connected.cast.other_org
    for organization, tool in ((own, "fake_list"), (other, "foreign_tool")):
        KnownTool.objects.create(organization=organization, vendor="fake", tool=tool, seen_sha256=b"1")

    def suggested(by: str, **query: str) -> str:
        address = connected.path("proxy_pages:explain")
        return text(connected.cast.client(by).get(address, query, headers={"HX-Request": "true"}))

    assert "member@example.com" in suggested("admin", suggest="who", who="mem")
    assert "build bot" in suggested("admin", suggest="who", who="build")
    assert "foreign" not in suggested("admin", suggest="who", who="foreign")
    assert suggested("member", suggest="who", who="mem").strip() == ""
    assert "fake_list" in suggested("admin", suggest="tool", tool="fake_li")
    assert "foreign" not in suggested("admin", suggest="tool", tool="foreign")
    assert "fake_list" not in suggested("member", suggest="tool", tool="fake_li"), "without access to the vendor"
    member = Membership.objects.get(organization=own, user=connected.cast.user("member"))
    ServerAccess.objects.create(organization=own, membership=member, vendor="fake")
    assert "fake_list" in suggested("member", suggest="tool", tool="fake_li")


def test_the_fix_is_a_button_for_those_who_may_and_a_name_for_others(connected: Site) -> None:
    cast, member = connected.cast, connected.cast.user("member")
    fix = ask(connected, "admin", str(member.id)).context["fix"]
    assert fix.label == "Give Member access to Fake"
    assert cast.client("admin").post(fix.url, fix.fields).status_code == 302
    assert ask(connected, "admin", str(member.id)).context["explanation"].failing is None
    restrict_tools(cast.org, role="member")
    for by in ("owner", "admin", "member"):
        fix = ask(connected, by, str(member.id)).context["fix"]
        assert fix.label == "Allow this tool for members"
        assert bool(fix.url) is (by == "owner")
        assert fix.who_can == (() if by == "owner" else ("Owner",))


def test_a_member_without_access_can_ask_for_it(connected: Site) -> None:
    fix = ask(connected, "member").context["fix"]
    assert (fix.label, fix.url) == ("Ask for access to Fake", connected.path("orgs:access-requests"))


def test_an_agent_gets_access_by_one_button(connected: Site) -> None:
    client = connected.tenant.client
    owner, organization = connected.cast.user("owner"), connected.cast.org
    replace_client_vendors(actor=owner, organization=organization, client=client, vendors=[])
    fix = ask(connected, "admin", client.client_id).context["fix"]
    assert connected.cast.client("admin").post(fix.url, fix.fields).status_code == 302
    assert ask(connected, "admin", client.client_id).context["explanation"].failing is None


def test_what_is_typed_is_inert_and_bounded(connected: Site) -> None:
    page = ask(connected, "owner", SCRIPT, SCRIPT)
    assert SCRIPT not in text(page)
    assert INERT in text(page)
    assert ask(connected, "owner", tool="x" * 201).status_code == 400


def test_asking_counts_nothing(connected: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SQLiteStore(tmp_path / "windows.sqlite3", backend.new_value)
    monkeypatch.setattr(backend, "current", lambda: store)
    for _ in range(3):
        quota = ask(connected, "owner").context["explanation"].steps[1]
        assert quota.detail == "0 of 5000 calls in the last hour."


def test_how_much_somebody_calls_is_told_to_nobody_else(
    connected: Site, shared: SQLiteStore, settings: LazySettings
) -> None:
    settings.TOOL_CALLS = Rule("tools-of-a-person", limit=7, window_s=3600)
    owner, client = str(connected.cast.user("owner").id), connected.tenant.client

    def quota(by: str, who: str) -> tuple[bool, str, str]:
        step = ask(connected, by, who).context["explanation"].steps[1]
        return step.passed, step.detail, step.remedy

    for calls in range(1, 8):
        shared.hit(settings.TOOL_CALLS, owner)
        shared.hit(settings.TOOL_CALLS, client.subject)
        assert quota("owner", "")[1] == quota("owner", owner)[1] == f"{calls} of 7 calls in the last hour."
        assert quota("admin", client.client_id)[1] == f"{calls} of 7 calls in the last hour.", "of this organization"
        if calls < 7:
            assert quota("admin", owner) == (True, "Within the limit of 7 calls per hour.", "")
    full = (
        False,
        "The limit of 7 calls per hour is used up.",
        "It resets within the hour. An operator sets the limit.",
    )
    assert quota("admin", owner) == full


@pytest.mark.usefixtures("lapsed")
def test_a_lapsed_plan_explains_as_well(connected: Site) -> None:
    assert ask(connected, "member").status_code == 200


def test_a_denied_row_of_the_log_leads_here(connected: Site) -> None:
    load_vendor("http://127.0.0.1:9/mcp", slug="other", prefix="ot")
    for status in ("denied", "success"):
        row = {"vendor": "other", "tool": "list", "user_id": connected.tenant.client.subject, "status": status}
        add_row(**row, org_id=connected.cast.org.id, timestamp=clock.now())
    path = connected.path("audit_pages:request-log")
    entries = re.findall(r'href="([?]entry=[^"]+)"', text(connected.owner().get(path)))
    drawers = [text(connected.owner().get(path + unescape(entry))) for entry in entries]
    [link] = [link for drawer in drawers for link in re.findall(r'href="([^"]+explain[^"]+vendor=[^"]+)"', drawer)]
    page = connected.owner().get(unescape(link))
    assert page.context["tool"] == "ot_list"
    assert page.context["explanation"].steps[0].detail.startswith("build bot is an agent")
    assert page.context["explanation"].failing.name == "credential"


def test_a_resource_is_explained_with_the_page_of_its_list(site: Site) -> None:
    load_vendor("http://127.0.0.1:9/mcp")
    connect(site.cast.org, site.cast.user("owner"))
    restrict_tools(site.cast.org, "x", role="owner")
    path = site.path("proxy_pages:explain")
    query = {"kind": "resources", "tool": "fake+file:///a.md"}
    page = text(site.owner().get(path, query))
    assert "can call only some tools of Fake" in page
    assert f"{site.path('proxy_pages:vendor-items', 'fake')}?role=owner" in page
    assert '<option value="resources" selected>' in page
    by_log = site.owner().get(path, {"kind": "resources", "tool": "file:///a.md", "vendor": "fake"})
    assert by_log.context["tool"] == "fake+file:///a.md"
    by_log = site.owner().get(path, {"kind": "resources", "tool": "fake+file:///a.md", "vendor": "fake"})
    assert by_log.context["tool"] == "fake+file:///a.md"
    assert site.owner().get(path, {"kind": "resources", "tool": "x" * 1_101}).status_code == 400
    assert site.owner().get(path, {"kind": "tools", "tool": "fake_list"}).status_code == 200


@pytest.mark.parametrize(
    ("kind", "item", "shown"),
    [("resource", "file:///a.md", "fake+file:///a.md"), ("prompt", "greet", "fake_greet")],
)
def test_a_refused_item_of_the_log_leads_here(site: Site, kind: str, item: str, shown: str) -> None:
    load_vendor("http://127.0.0.1:9/mcp")
    connect(site.cast.org, site.cast.user("owner"))
    restrict_tools(site.cast.org, "x")
    row = {"vendor": "fake", "tool": "", "kind": kind, "item": item, "user_id": site.tenant.client.subject}
    add_row(**row, status="denied", error_code="item_not_allowed", org_id=site.cast.org.id, timestamp=clock.now())
    path = site.path("audit_pages:request-log")
    [entry] = set(re.findall(r'href="([?]entry=[^"]+)"', text(site.owner().get(path))))
    drawer = text(site.owner().get(path + unescape(entry)))
    [link] = set(re.findall(r'href="([^"]+explain[^"]+vendor=[^"]+)"', drawer))
    page = site.owner().get(unescape(link))
    assert page.context["tool"] == shown
    assert page.context["explanation"].failing.name == "allowlist"
    assert site.path("proxy_pages:vendor-items", "fake") in drawer

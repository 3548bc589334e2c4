"""The pages of agents: making one, its overview, access, settings and rotations, and its rows in the matrix."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from audit.models import AdminAuditEntry
from gateway.lib import clock
from oauth_ext.models import AgentKey, Client, ServiceClientVendor
from oauth_ext.models.client import ToolMode
from oauth_ext.services.service_client_vendors import add_client_vendor, replace_client_vendors
from tests.api.audit.rows import add_row
from tests.api.audit.usage.rows import log_row, store
from tests.api.pages.conftest import Site, hidden, notices, text
from tests.factories.tenant import connect, load_vendor, make_tenant

NEW = {"name": "night shift", "access": "all", "expires_in_days": "30", "mcp_client": "cursor"}
OTHERS = {"member": 403, "other_owner": 404, "stranger": 404, "nobody": 302}


@pytest.fixture
def agents(site: Site) -> Site:
    """`fake` and `other` are connected in the first organization."""
    load_vendor("http://127.0.0.1:9/mcp", slug="other")
    for slug in ("fake", "other"):
        connect(site.cast.org, site.cast.user("owner"), slug)
    return site


def create(site: Site, who: str = "admin", **fields: object) -> Any:
    browser, path = site.cast.client(who), site.path("oauth_pages:service-client-new")
    return browser.post(path, {**NEW, "form_key": hidden(browser.get(path), "form_key"), **fields})


def change(site: Site, page: str, *, who: str = "admin", **fields: object) -> Any:
    return site.cast.client(who).post(site.client_path(page), fields, follow=True)


def changes(site: Site) -> list[str]:
    rows = AdminAuditEntry.objects.filter(org_id=site.cast.org.id).order_by("timestamp", "id")
    return [row.event_type for row in rows]


def own(site: Site) -> Client:
    found: Client = Client.objects.get(pk=site.tenant.client.pk)
    return found


def listed(site: Site) -> set[str]:
    return set(ServiceClientVendor.objects.filter(client=site.tenant.client).values_list("vendor", flat=True))


def restrict(site: Site, *vendors: str) -> None:
    replace_client_vendors(
        actor=site.cast.user("owner"), organization=site.cast.org, client=site.tenant.client, vendors=vendors
    )


class TestCreation:
    def test_with_every_vendor(self, agents: Site) -> None:
        answer = create(agents)
        client = Client.objects.get(name="night shift")
        assert answer.status_code == 201
        assert (client.restricted, client.tool_mode, client.organization) == (False, ToolMode.ALL, agents.cast.org)
        assert client.responsible_person == agents.cast.user("admin")
        assert answer.context["snippet"].client == "Cursor"
        assert answer.context["agent_key"] in answer.context["snippet"].code
        assert len(answer.context["other_snippets"]) == 5
        assert all(answer.context["agent_key"] in each.code for each in answer.context["other_snippets"])
        assert "client_secret" not in text(answer)
        assert "Waiting for its first call" in text(answer)
        assert changes(agents)[-2:] == ["service_client.created", "agent_key.created"]

    def test_with_chosen_vendors_and_read_only(self, agents: Site) -> None:
        assert create(agents, access="chosen", vendors=["fake"], read_only="on").status_code == 201
        client = Client.objects.get(name="night shift")
        assert (client.restricted, client.tool_mode) == (True, ToolMode.READ_ONLY)
        assert list(ServiceClientVendor.objects.filter(client=client).values_list("vendor", flat=True)) == ["fake"]
        assert changes(agents)[-3:] == ["service_client.created", "server_access.replaced", "agent_key.created"]
        created = AdminAuditEntry.objects.get(event_type="service_client.created", target_id=str(client.id))
        assert created.metadata["mode"] == "read_only"

    def test_vendors_that_were_not_chosen_do_not_count(self, agents: Site) -> None:
        create(agents, access="all", vendors=["fake"])
        assert not Client.objects.get(name="night shift").restricted
        assert not ServiceClientVendor.objects.exists()

    @pytest.mark.parametrize("vendors", [[], ["unheard"], ["fake", "unheard"]])
    def test_a_wrong_choice_of_vendors_makes_nothing(self, agents: Site, vendors: list[str]) -> None:
        answer = create(agents, access="chosen", vendors=vendors)
        assert (answer.status_code, list(answer.context["form"].errors)) == (422, ["vendors"])
        assert 'value="night shift"' in text(answer)
        assert not Client.objects.filter(name="night shift").exists()

    @pytest.mark.parametrize("who", OTHERS)
    def test_who_may_not(self, agents: Site, who: str) -> None:
        path = agents.path("oauth_pages:service-client-new")
        key = hidden(agents.owner().get(path), "form_key")
        assert agents.cast.client(who).post(path, {**NEW, "form_key": key}).status_code == OTHERS[who]
        assert not Client.objects.filter(name="night shift").exists()

    @pytest.mark.usefixtures("lapsed")
    def test_it_needs_a_plan(self, agents: Site) -> None:
        page = agents.owner().get(agents.path("oauth_pages:service-client-new"))
        assert "New agents need an active plan." in text(page)
        answer = agents.owner().post(
            agents.path("oauth_pages:service-client-new"), {**NEW, "form_key": hidden(page, "form_key")}
        )
        assert answer.status_code == 402
        assert not Client.objects.filter(name="night shift").exists()

    def test_a_refused_key_takes_the_agent_back(self, agents: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        from gateway.lib.errors import Conflict

        def refuse(**_: object) -> None:
            raise Conflict("no key today")

        monkeypatch.setattr("oauth_ext.services.new_agents.mint_agent_key", refuse)
        answer = create(agents)
        assert "no key today" in text(answer)
        assert not Client.objects.filter(name="night shift").exists()
        assert "service_client.created" not in changes(agents)


class TestFirstCall:
    def part(self, site: Site, query: str = "") -> str:
        path = site.client_path("service-client-first-call") + query
        return text(site.owner().get(path, headers={"HX-Request": "true"}))

    def test_it_waits_and_then_says_received(self, agents: Site) -> None:
        part = self.part(agents)
        assert "Waiting for its first call" in part
        assert 'hx-trigger="every 3s"' in part
        assert "<main" not in part
        add_row(org_id=agents.cast.other_org.id, user_id=own(agents).subject)
        assert "Waiting for its first call" in self.part(agents)
        add_row(org_id=agents.cast.org.id, user_id=own(agents).subject)
        part = self.part(agents)
        assert "First call received" in part
        assert "hx-trigger" not in part

    def test_a_client_that_signed_in_is_connected(self, agents: Site) -> None:
        Client.objects.filter(pk=own(agents).pk).update(last_used_at=clock.now())
        assert "Connected. Waiting for its first tool call" in self.part(agents)

    @pytest.mark.parametrize(("asked", "goes_on"), [("0", True), ("298", True), ("299", False), ("x", True)])
    def test_it_stops_asking(self, agents: Site, asked: str, goes_on: bool) -> None:
        part = self.part(agents, f"?asked={asked}")
        assert ("hx-trigger" in part, "No calls yet." in part) == (goes_on, not goes_on)
        assert "Check now" in part

    def test_without_scripts_it_is_a_page(self, agents: Site) -> None:
        page = text(agents.owner().get(agents.client_path("service-client-first-call")))
        assert "<main" in page
        assert "Waiting for its first call" in page


class TestOverview:
    def test_its_figures_are_its_own(self, agents: Site) -> None:
        subject, now = own(agents).subject, clock.now().replace(microsecond=0)
        failed = {"status": "error", "error_code": "tool_error"}
        rows = [
            log_row(now - timedelta(hours=1), org_id=agents.cast.org.id, user_id=subject),
            log_row(now - timedelta(hours=1), org_id=agents.cast.org.id, user_id=subject, **failed),
            log_row(now - timedelta(days=20), org_id=agents.cast.org.id, user_id=subject),
            log_row(now - timedelta(hours=1), org_id=agents.cast.org.id, user_id="somebody-else"),
            log_row(now - timedelta(hours=1), org_id=agents.cast.other_org.id, user_id=subject),
        ]
        store(*rows)
        page = agents.owner().get(agents.client_path("service-client"))
        assert "Many errors this week" in text(page)
        context = page.context
        assert [(each.calls, each.errors) for each in context["periods"]] == [(2, 1), (3, 1)]
        assert [each.error_code for each, _ in context["errors"]] == ["tool_error"]
        assert "The tool reported an error</a> <code" in text(page)

    def test_one_error_among_many_calls_is_no_fault(self, agents: Site) -> None:
        subject, at = own(agents).subject, clock.now().replace(microsecond=0) - timedelta(hours=1)
        failed = {"status": "error", "error_code": "tool_error"}
        good = [log_row(at, org_id=agents.cast.org.id, user_id=subject) for _ in range(2)]
        store(*good, log_row(at, org_id=agents.cast.org.id, user_id=subject, **failed))
        page = agents.owner().get(agents.client_path("service-client"))
        assert page.context["periods"][0].errors == 1
        assert "Many errors this week" not in text(page)

    @pytest.mark.parametrize(
        ("expires", "used", "label"),
        [
            (-1, None, "Expired"),
            (3, None, "Expires soon"),
            (60, None, "Not used yet"),
            (60, 1, "Active"),
        ],
    )
    def test_its_state(self, agents: Site, expires: int, used: int | None, label: str) -> None:
        now = clock.now()
        Client.objects.filter(pk=own(agents).pk).update(
            expires_at=now + timedelta(days=expires), last_used_at=used and now - timedelta(days=used)
        )
        for path in (agents.client_path("service-client"), agents.path("oauth_pages:service-clients")):
            assert f" {label}</span>" in text(agents.owner().get(path))

    @pytest.mark.usefixtures("lapsed")
    def test_without_a_plan_it_has_no_figures(self, agents: Site) -> None:
        answer = agents.owner().get(agents.client_path("service-client"))
        assert answer.status_code == 200
        assert "periods" not in answer.context
        assert (
            agents.owner().get(agents.path("audit_pages:service-client-activity", own(agents).client_id)).status_code
            == 402
        )

    def test_each_tab_opens(self, agents: Site) -> None:
        browser = agents.cast.client("admin")
        tabs = browser.get(agents.client_path("service-client")).context["tabs"]
        assert [tab["label"] for tab in tabs] == ["Overview", "Access", "Tools", "Activity", "Settings"]
        for tab in tabs:
            page = browser.get(tab["url"])
            assert page.status_code == 200
            assert "<h1>build bot</h1>" in text(page)
            assert [each["label"] for each in page.context["tabs"] if each["active"]] == [tab["label"]]

    def test_its_activity_is_its_own(self, agents: Site) -> None:
        add_row(org_id=agents.cast.org.id, user_id=own(agents).subject, request_id="its")
        add_row(org_id=agents.cast.org.id, request_id="another")
        page = agents.owner().get(
            agents.path("audit_pages:service-client-activity", own(agents).client_id), {"user_id": "another"}
        )
        assert [row.request_id for row in page.context["entries"]] == ["its"]
        assert 'id="f-who"' not in text(page)


class TestAccess:
    PAGE = "service-client-access"

    def rows(self, site: Site) -> dict[str, tuple[str, ...]]:
        context = site.owner().get(site.client_path(self.PAGE)).context
        return {each.slug: each.reasons for each in context["vendors"]}

    def test_it_is_restricted_and_keeps_what_it_has(self, agents: Site) -> None:
        assert self.rows(agents) == {"fake": ("all vendors",), "other": ("all vendors",)}
        change(agents, self.PAGE, action="restrict")
        assert own(agents).restricted
        assert listed(agents) == {"fake", "other"}
        change(agents, self.PAGE, action="remove", vendor="other")
        assert self.rows(agents) == {"fake": ("chosen",), "other": ()}
        # A list that another admin has shortened meanwhile stays.
        answer = change(agents, self.PAGE, action="restrict")
        assert notices(answer) == ["build bot was already limited to chosen vendors. Nothing changed."]
        assert listed(agents) == {"fake"}
        change(agents, self.PAGE, action="lift")
        assert (own(agents).restricted, listed(agents)) == (False, set())
        assert changes(agents)[-3:] == ["server_access.replaced", "server_access.revoked", "server_access.replaced"]

    def test_access_with_an_end(self, agents: Site) -> None:
        restrict(agents)
        answer = change(agents, self.PAGE, action="give", vendor="fake", ends="1d")
        row = ServiceClientVendor.objects.get()
        assert row.expires_at is not None
        assert timedelta(hours=23) < row.expires_at - clock.now() <= timedelta(days=1)
        assert notices(answer)[0].startswith("build bot can use Fake until ")
        change(agents, self.PAGE, action="give", vendor="fake", ends="")
        assert ServiceClientVendor.objects.get().expires_at is None

    @pytest.mark.parametrize(
        ("form", "said"),
        [
            ({"vendor": "fake", "ends": "date", "ends_on": "2020-01-01"}, "has passed"),
            ({"vendor": "fake", "ends": "soon"}, "Choose how long the access lasts."),
            ({"vendor": "unheard"}, "Choose a vendor."),
            ({}, "Choose a vendor."),
        ],
    )
    def test_a_wrong_form_changes_nothing(self, agents: Site, form: dict[str, str], said: str) -> None:
        restrict(agents)
        answer = change(agents, self.PAGE, action="give", **form)
        assert said in notices(answer)[0]
        assert listed(agents) == set()

    @pytest.mark.parametrize("action", ["", "rename"])
    def test_an_unknown_button_changes_nothing(self, agents: Site, action: str) -> None:
        assert change(agents, self.PAGE, action=action).status_code == 400

    @pytest.mark.parametrize("who", OTHERS)
    def test_who_may_not(self, agents: Site, who: str) -> None:
        restrict(agents, "fake")
        for form in ({"action": "lift"}, {"action": "give", "vendor": "other"}, {"action": "remove", "vendor": "fake"}):
            answer = agents.cast.client(who).post(agents.client_path(self.PAGE), form)
            assert answer.status_code == OTHERS[who]
        assert (own(agents).restricted, listed(agents)) == (True, {"fake"})

    @pytest.mark.usefixtures("lapsed")
    def test_it_needs_no_plan_as_over_the_api(self, agents: Site) -> None:
        change(agents, self.PAGE, action="restrict")
        assert own(agents).restricted


class TestSettings:
    PAGE = "service-client-settings"

    def form(self, site: Site, **fields: str) -> dict[str, str]:
        client = own(site)
        assert client.expires_at is not None
        person = client.responsible_person
        kept = {"last_day": str(client.expires_at.date()), "person": "" if person is None else person.email}
        return {"name": client.name, **kept, **fields}

    def test_name_last_day_and_person(self, agents: Site) -> None:
        day = (clock.now() + timedelta(days=200)).date()
        member = agents.cast.user("member")
        form = self.form(agents, name="Day bot", last_day=str(day), person=member.email.upper())
        answer = change(agents, self.PAGE, **form)
        assert notices(answer) == ["Saved."]
        client = own(agents)
        assert (client.name, client.responsible_person) == ("Day bot", member)
        assert client.expires_at == clock.midnight(day) + timedelta(days=1) - clock.MILLISECOND
        change(agents, self.PAGE, **self.form(agents, person=""))
        assert own(agents).responsible is None
        assert changes(agents)[-2:] == ["service_client.updated", "service_client.updated"]

    def test_what_was_left_alone_stays(self, agents: Site) -> None:
        before = own(agents).expires_at
        change(agents, self.PAGE, **self.form(agents))
        assert own(agents).expires_at == before
        assert "service_client.updated" not in changes(agents)

    def test_an_expired_agent_works_again(self, agents: Site) -> None:
        Client.objects.filter(pk=own(agents).pk).update(expires_at=clock.now() - timedelta(days=3))
        assert "Expired" in text(agents.owner().get(agents.client_path(self.PAGE)))
        change(agents, self.PAGE, **self.form(agents, last_day=str((clock.now() + timedelta(days=365)).date())))
        assert not own(agents).is_expired()

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("name", ""),
            ("last_day", "2020-01-01"),
            ("last_day", "2999-01-01"),
            ("last_day", "tomorrow"),
            ("person", "other_owner@example.com"),
            ("person", "member"),
        ],
    )
    def test_a_fault_is_shown_and_nothing_saved(self, agents: Site, field: str, value: str) -> None:
        before = own(agents)
        answer = change(agents, self.PAGE, **self.form(agents, **{"name": "Changed", field: value}))
        assert answer.status_code == 422
        after = own(agents)
        assert (after.name, after.expires_at, after.responsible) == (before.name, before.expires_at, before.responsible)

    def test_owners_alone_change_the_mode(self, agents: Site) -> None:
        form = {"action": "mode", "mode": "read_only"}
        assert change(agents, self.PAGE, who="admin", **form).status_code == 403
        assert "Only owners can change this." in text(agents.cast.client("admin").get(agents.client_path(self.PAGE)))
        assert not own(agents).is_read_only
        change(agents, self.PAGE, who="owner", **form)
        assert own(agents).is_read_only
        change(agents, self.PAGE, who="owner", action="mode", mode="all")
        assert not own(agents).is_read_only

    @pytest.mark.parametrize("who", OTHERS)
    def test_who_may_not(self, agents: Site, who: str) -> None:
        for form in (self.form(agents, name="Intruder"), {"action": "mode", "mode": "read_only"}):
            answer = agents.cast.client(who).post(agents.client_path(self.PAGE), form)
            assert answer.status_code == OTHERS[who]
        assert (own(agents).name, own(agents).is_read_only) == ("build bot", False)

    @pytest.mark.usefixtures("lapsed")
    def test_it_needs_no_plan_as_over_the_api(self, agents: Site) -> None:
        change(agents, self.PAGE, **self.form(agents, name="Day bot"))
        assert own(agents).name == "Day bot"


class TestRotation:
    def rotate(self, site: Site, page: str, who: str = "admin", **fields: str) -> Any:
        browser, path = site.cast.client(who), site.client_path(page)
        return browser.post(path, {"form_key": hidden(browser.get(path), "form_key"), **fields})

    @pytest.mark.parametrize(("hours", "said"), [("1", "another 1 hour."), ("24", "another 24 hours.")])
    def test_a_key_with_an_overlap(self, agents: Site, hours: str, said: str) -> None:
        answer = self.rotate(agents, "agent-key", overlap_hours=hours)
        assert answer.status_code == 201
        assert f"The old one works for {said}" in text(answer)
        old = AgentKey.objects.get(client=agents.tenant.client, ends_at__isnull=False)
        assert old.ends_at is not None
        assert old.ends_at - clock.now() > timedelta(hours=int(hours), minutes=-1)
        settings = text(agents.owner().get(agents.client_path("service-client-settings")))
        assert f"<code>{old.prefix}…</code>, works until" in settings

    def test_a_key_without_one(self, agents: Site) -> None:
        assert self.rotate(agents, "agent-key", overlap_hours="0").status_code == 201
        assert AgentKey.objects.get(client=agents.tenant.client).ends_at is None

    @pytest.mark.parametrize(("hours", "has_old"), [("0", False), ("24", True)])
    def test_a_client_secret(self, agents: Site, hours: str, has_old: bool) -> None:
        answer = self.rotate(agents, "client-secret", overlap_hours=hours)
        assert answer.status_code == 201
        secret = {env: value for _, env, value in answer.context["secret"]["values"]}["GATEWAY_CLIENT_SECRET"]
        client = own(agents)
        assert secret not in client.client_secret
        assert (client.previous_secret_counts_until is not None) is has_old
        assert changes(agents)[-1] == "service_client.secret_rotated"

    @pytest.mark.parametrize("page", ["agent-key", "client-secret"])
    @pytest.mark.parametrize("hours", ["2", "-1", "x"])
    def test_another_overlap_is_refused(self, agents: Site, page: str, hours: str) -> None:
        before = changes(agents)
        assert self.rotate(agents, page, overlap_hours=hours).status_code == 422
        assert changes(agents) == before

    @pytest.mark.parametrize("page", ["agent-key", "client-secret"])
    def test_an_agent_in_use_needs_its_name(self, agents: Site, page: str) -> None:
        Client.objects.filter(pk=own(agents).pk).update(last_used_at=clock.now())
        before = changes(agents)
        assert self.rotate(agents, page, typed_name="Build bot").status_code == 422
        assert changes(agents) == before
        assert self.rotate(agents, page, typed_name="build bot").status_code == 201

    @pytest.mark.parametrize("who", OTHERS)
    def test_who_may_not(self, agents: Site, who: str) -> None:
        before = own(agents).client_secret
        key = hidden(agents.owner().get(agents.client_path("client-secret")), "form_key")
        answer = agents.cast.client(who).post(agents.client_path("client-secret"), {"form_key": key})
        assert answer.status_code == OTHERS[who]
        assert own(agents).client_secret == before

    @pytest.mark.usefixtures("lapsed")
    def test_a_secret_needs_no_plan_and_a_key_does(self, agents: Site) -> None:
        assert self.rotate(agents, "client-secret").status_code == 201
        assert self.rotate(agents, "agent-key").status_code == 402


class TestMatrix:
    QUERY = "?view=agents"

    def path(self, site: Site) -> str:
        return site.path("orgs:server-access") + self.QUERY

    def save(self, site: Site, *, had: str, grant: list[str], who: str = "admin", client: Client | None = None) -> Any:
        key = (client or site.tenant.client).pk
        form = {"had": [f"{key}:{had}"], "grant": [f"{key}:{slug}" for slug in grant]}
        return site.cast.client(who).post(self.path(site), form, follow=True)

    def cells(self, page: Any) -> dict[tuple[str, str], tuple[bool, tuple[str, ...]]]:
        return {
            (row.label, cell.vendor.slug): (cell.is_direct, cell.reasons)
            for row in page.context["rows"]
            for cell in row.cells
        }

    def test_a_row_for_each_agent(self, agents: Site) -> None:
        open_one = make_tenant(agents.cast.org, agents.cast.user("owner"), name="open bot").client
        restrict(agents, "fake")
        page = agents.cast.client("admin").get(self.path(agents))
        assert self.cells(page) == {
            ("build bot", "fake"): (True, ()),
            ("build bot", "other"): (False, ()),
            ("open bot", "fake"): (False, ("all vendors",)),
            ("open bot", "other"): (False, ("all vendors",)),
        }
        assert text(page).count('name="grant"') == 2
        assert agents.path("oauth_pages:service-client-access", open_one.client_id) in text(page)
        found = agents.cast.client("admin").get(self.path(agents) + "&q=open")
        assert {label for label, _ in self.cells(found)} == {"open bot"}

    def test_saving_and_undo(self, agents: Site) -> None:
        restrict(agents, "fake")
        answer = self.save(agents, had="fake", grant=["other"])
        assert answer.context["undo"]["text"] == "Access updated: 1 added, 1 removed."
        assert listed(agents) == {"other"}
        assert changes(agents)[-2:] == ["server_access.granted", "server_access.revoked"]
        agents.cast.client("admin").post(self.path(agents), answer.context["undo"]["fields"])
        assert listed(agents) == {"fake"}

    def test_access_with_an_end_is_shown_and_not_offered_for_undo(self, agents: Site) -> None:
        restrict(agents)
        add_client_vendor(
            actor=agents.cast.user("owner"),
            organization=agents.cast.org,
            client=agents.tenant.client,
            vendor="fake",
            expires_at=clock.now() + timedelta(days=2),
        )
        assert "ends <time" in text(agents.cast.client("admin").get(self.path(agents)))
        answer = self.save(agents, had="fake", grant=[])
        assert notices(answer) == ["Access updated: 0 added, 1 removed."]
        assert answer.context["undo"] is None

    def test_access_is_given_with_an_end(self, agents: Site) -> None:
        restrict(agents)
        key = agents.tenant.client.pk
        form = {"had": [f"{key}:"], "grant": [f"{key}:fake"], "ends": "7d"}
        agents.cast.client("admin").post(self.path(agents), form)
        row = ServiceClientVendor.objects.get()
        assert row.expires_at is not None
        assert timedelta(days=6) < row.expires_at - clock.now() <= timedelta(days=7)
        granted = AdminAuditEntry.objects.get(event_type="server_access.granted")
        assert granted.metadata == {"vendor": "fake", "expiresAt": clock.rfc3339(row.expires_at)}

    def test_an_agent_with_every_vendor_is_not_narrowed(self, agents: Site) -> None:
        answer = self.save(agents, had="", grant=["fake"])
        assert notices(answer) == ["1 agent can use all vendors. To remove some, choose its vendors on its own page."]
        assert (own(agents).restricted, listed(agents)) == (False, set())

    def test_an_unknown_vendor_changes_nothing(self, agents: Site) -> None:
        restrict(agents, "fake")
        assert self.save(agents, had="fake", grant=["unheard"]).status_code == 404
        assert listed(agents) == {"fake"}

    def test_another_organizations_agent_is_not_reached(self, agents: Site) -> None:
        theirs = make_tenant(agents.cast.other_org, agents.cast.user("other_owner"), name="foreign bot").client
        theirs.restricted = True
        theirs.save()
        assert ("foreign bot", "fake") not in self.cells(agents.cast.client("admin").get(self.path(agents)))
        answer = self.save(agents, had="", grant=["fake"], client=theirs)
        assert notices(answer) == ["1 of the people you changed had already left."]
        assert not ServiceClientVendor.objects.filter(client=theirs).exists()

    @pytest.mark.parametrize("who", OTHERS)
    def test_who_may_not(self, agents: Site, who: str) -> None:
        restrict(agents)
        form = {"had": [], "grant": [f"{agents.tenant.client.pk}:fake"]}
        assert agents.cast.client(who).post(self.path(agents), form).status_code == OTHERS[who]
        assert listed(agents) == set()

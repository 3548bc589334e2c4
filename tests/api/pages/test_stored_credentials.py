"""The credentials on a vendor's settings page: checked again, named keys, and what deleting one says first."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from audit.models import REJECTED, AdminAuditEntry
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.rejections import summaries_with_rejection
from credentials.sealing import open_fields, wrapped_keys
from credentials.selectors import credential_refs
from gateway.lib import clock
from orgs.models import Membership, Team, TeamMembership
from tests.api.audit.rows import add_row
from tests.api.pages.conftest import Site, notices, text
from tests.api.pages.test_markup import Strict
from tests.factories.tenant import connect, load_vendor

SECRET = "st0red-key-nobody-may-read"
NEW = "n3w-key-nobody-may-read"
REFUSED = {"member": 403, "other_owner": 404, "stranger": 404, "nobody": 302}


@pytest.fixture
def team(site: Site) -> Team:
    """A team with the member in it; another of the same name in the other organization."""
    Team.objects.create(organization=site.cast.other_org, name="Night shift")
    made = Team.objects.create(organization=site.cast.org, name="Night shift")
    member = Membership.objects.get(organization=site.cast.org, user=site.cast.user("member"))
    TeamMembership.objects.create(team=made, membership=member)
    return made


def store(site: Site, scope: CredentialScope = CredentialScope.ORGANIZATION, **place: Any) -> Credential:
    return connect(site.cast.org, site.cast.user("owner"), "fake", scope, place, apiKey=SECRET)


def store_foreign(site: Site) -> Credential:
    return connect(site.cast.other_org, site.cast.user("other_owner"), apiKey=SECRET)


def everything(site: Site, team: Team) -> dict[str, Credential]:
    """One credential of each kind."""
    return {
        "organization": store(site),
        "team": store(site, CredentialScope.TEAM, team=team),
        "key": store(site, CredentialScope.NAMED_KEY, name="Reporting"),
        "agent": store(site, CredentialScope.SERVICE_CLIENT, service_client=site.tenant.client),
    }


def settings_page(site: Site) -> str:
    return site.path("credentials:connection", "fake")


def check(site: Site, credential: Credential, who: str = "admin", **sent: str) -> Any:
    return site.cast.client(who).post(site.path("credentials:check", str(credential.id)), sent, follow=True)


def call(site: Site, scope: str, who: str = "member", **changes: Any) -> None:
    subject = str(site.cast.user(who).id) if who in site.cast.people else who
    facts = {"org_id": site.cast.org.id, "vendor": "fake", "user_id": subject, "credential_scope": scope}
    add_row(**{**facts, "status": "success", "timestamp": clock.now() - timedelta(hours=1), **changes})


def opened(site: Site, credential: Credential) -> dict[str, str]:
    (ref,) = (each for each in credential_refs(site.cast.org.id) if each.id == credential.id)
    return open_fields(ref, organization_id=site.cast.org.id, wrapped=wrapped_keys(site.cast.org.id))


def words(response: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text(response)).split())


class TestCheckAgain:
    @pytest.mark.parametrize("kind", ["organization", "team", "key", "agent"])
    def test_the_vendor_accepts_it(self, site: Site, team: Team, kind: str) -> None:
        stored = everything(site, team)[kind]
        before = Credential.objects.get(pk=stored.pk)
        answer = check(site, stored)
        assert site.asked == [{"X-Api-Key": SECRET}]
        row = Credential.objects.get(pk=stored.pk)
        assert (row.check_verdict, row.validated_at) == ("validated", row.checked_at)
        assert (row.updated_at, row.revision, bytes(row.sealed)) == (
            before.updated_at,
            before.revision,
            bytes(before.sealed),
        )
        assert "The vendor accepted the credentials." in notices(answer)[0]
        assert answer.status_code == 200
        assert SECRET not in text(answer)
        entry = AdminAuditEntry.objects.get(event_type="credential.checked")
        assert (entry.org_id, entry.actor_id, entry.target_id) == (
            site.cast.org.id,
            str(site.cast.user("admin").id),
            str(stored.id),
        )
        assert entry.metadata["verdict"] == "validated"
        assert SECRET not in str(entry.__dict__)

    def test_the_vendor_rejects_it(self, site: Site, team: Team) -> None:
        stored = everything(site, team)["team"]
        site.vendor_status = 403
        assert "The vendor answered 403." in notices(check(site, stored, **{"from": "vendor"}))[0]
        flagged = {row.id: row.rejected_at for row in summaries_with_rejection(site.cast.org) if row.rejected_at}
        assert flagged == {stored.id: Credential.objects.get(pk=stored.pk).checked_at}
        assert "Credentials rejected" in words(site.owner().get(settings_page(site)))
        site.vendor_status = 200
        check(site, stored)
        assert not any(row.rejected_at for row in summaries_with_rejection(site.cast.org))

    def test_an_accepted_check_ends_rejections_of_calls(self, site: Site) -> None:
        stored = store(site)
        at = clock.now().replace(microsecond=0)
        Credential.objects.update(updated_at=clock.now() - timedelta(hours=3))
        for hours in (2, 1):
            when = at - timedelta(hours=hours)
            call(site, "organization", status="error", error_code=REJECTED, timestamp=when)
        (row,) = summaries_with_rejection(site.cast.org)
        assert (row.rejected_since, row.rejected_at) == (at - timedelta(hours=2), at - timedelta(hours=1))
        check(site, stored)
        (row,) = summaries_with_rejection(site.cast.org)
        assert (row.rejected_since, row.rejected_at) == (None, None)

    def test_a_success_between_rejections_hides_since_when(self, site: Site) -> None:
        store(site)
        now = clock.now().replace(microsecond=0)
        Credential.objects.update(updated_at=now - timedelta(hours=4))
        for hours in (3, 1):
            when = now - timedelta(hours=hours)
            call(site, "organization", status="error", error_code=REJECTED, timestamp=when)
        call(site, "organization", timestamp=now - timedelta(hours=2))
        (row,) = summaries_with_rejection(site.cast.org)
        assert (row.rejected_since, row.rejected_at) == (None, now - timedelta(hours=1))

    def test_silence_takes_nothing_back(self, site: Site) -> None:
        stored = store(site)
        check(site, stored)
        validated_at = Credential.objects.get().validated_at
        site.vendor_status = None
        assert "The vendor didn’t respond in time." in notices(check(site, stored))[0]
        row = Credential.objects.get()
        assert (row.check_verdict, row.validated_at) == ("unconfirmed", validated_at)
        assert "Not verified" in words(site.owner().get(settings_page(site)))

    @pytest.mark.parametrize("who", REFUSED)
    def test_others_ask_nothing(self, site: Site, who: str) -> None:
        stored = store(site)
        path = site.path("credentials:check", str(stored.id))
        assert site.cast.client(who).post(path).status_code == REFUSED[who]
        assert site.cast.client("admin").get(path).status_code == 405
        assert site.asked == []
        assert Credential.objects.get().checked_at is None

    def test_another_organizations_is_not_there(self, site: Site) -> None:
        foreign = store_foreign(site)
        assert site.owner().post(site.path("credentials:check", str(foreign.id))).status_code == 404
        assert site.asked == []

    def test_values_that_the_vendor_has_outgrown_are_not_sent(self, site: Site) -> None:
        stored = store(site)
        load_vendor("http://127.0.0.1:9/mcp")
        Credential.objects.update(sealed=b"altered")
        assert "can’t be decrypted" in notices(check(site, stored))[0]
        assert site.asked == []


class TestSettings:
    def test_each_credential_with_its_age_its_use_and_its_check(self, site: Site, team: Team) -> None:
        everything(site, team)
        now = clock.now()
        Credential.objects.update(stored_at=now - timedelta(days=95), last_used_at=now - timedelta(minutes=4))
        response = site.owner().get(settings_page(site))
        page = words(response)
        for whose in ("Organization", "Key Reporting", "Team Night shift", f"Agent {site.tenant.client.name}"):
            assert whose in page
        assert page.count("3 months ago by Owner") == 4
        assert page.count("4 minutes ago") == 4
        assert page.count("Check again") == 4
        assert not Strict(text(response)).inline
        assert SECRET not in text(response)

    def test_of_another_organization_nothing_shows(self, site: Site) -> None:
        foreign = store_foreign(site)
        page = text(site.owner().get(settings_page(site)))
        assert str(foreign.id) not in page
        assert "Check again" not in page


class TestKeys:
    def new(self, site: Site, who: str = "admin", **sent: str) -> Any:
        path = site.path("credentials:key-new", "fake")
        return site.cast.client(who).post(path, {"key_name": "EU", "key_team": "", "apiKey": SECRET, **sent})

    def page(self, site: Site, key: Credential) -> str:
        return site.path("credentials:key", "fake", str(key.id))

    def test_one_is_added_for_a_team(self, site: Site, team: Team) -> None:
        assert self.new(site, key_team=str(team.id)).status_code == 302
        key = Credential.objects.get()
        assert (key.scope, key.name, key.team_id, key.check_verdict) == ("named_key", "EU", team.id, "validated")
        assert "team Night shift" in words(site.owner().get(settings_page(site)))

    @pytest.mark.parametrize(
        ("sent", "message"),
        [
            ({"key_name": "Taken"}, "Another key for this vendor already has this name. Choose a different one."),
            ({"key_name": ""}, "This field is required."),
            ({"key_name": "a\u202eb"}, "Nothing was saved."),
            ({"apiKey": ""}, "This field is required."),
            ({"key_team": "other"}, "Select a valid choice."),
        ],
    )
    def test_what_is_wrong_is_said_and_nothing_stored(
        self, site: Site, team: Team, sent: dict[str, str], message: str
    ) -> None:
        store(site, CredentialScope.NAMED_KEY, name="Taken", team=team)
        answer = self.new(site, **sent)
        assert answer.status_code == 422
        assert message in words(answer)
        assert SECRET not in text(answer)
        assert Credential.objects.count() == 1

    def test_a_team_with_a_key_and_a_foreign_team_are_no_choice(self, site: Site, team: Team) -> None:
        store(site, CredentialScope.NAMED_KEY, name="Taken", team=team)
        foreign = Team.objects.get(organization=site.cast.other_org)
        for asked in (team, foreign):
            assert self.new(site, key_team=str(asked.id)).status_code == 422
        assert Credential.objects.count() == 1

    def test_a_rejected_one_is_not_stored(self, site: Site) -> None:
        site.vendor_status = 401
        answer = self.new(site)
        assert answer.status_code == 422
        assert "Fake rejected these credentials (401). Nothing was saved." in words(answer)
        assert 'value="EU"' in text(answer)
        assert SECRET not in text(answer)
        assert not Credential.objects.exists()

    def test_replacing_keeps_the_old_until_the_vendor_accepts(self, site: Site, team: Team) -> None:
        key = store(site, CredentialScope.NAMED_KEY, name="EU", team=team)
        path, browser = self.page(site, key), site.cast.client("admin")
        for status, answered in ((401, 422), (None, 409)):
            site.vendor_status = status
            assert browser.post(path, {"apiKey": NEW}).status_code == answered
            assert opened(site, key) == {"apiKey": SECRET}
        assert browser.post(path, {"apiKey": NEW, "anyway": "1"}).status_code == 302
        assert opened(site, key) == {"apiKey": NEW}
        site.vendor_status = 200
        assert browser.post(path, {"apiKey": SECRET}).status_code == 302
        assert opened(site, key) == {"apiKey": SECRET}
        row = Credential.objects.get()
        assert (row.id, row.name, row.team_id, row.revision) == (key.id, "EU", team.id, 3)
        events = AdminAuditEntry.objects.filter(event_type="credential_key.replaced")
        assert [event.metadata["validated"] for event in events.order_by("timestamp", "id")] == [False, True]

    def test_it_is_renamed_assigned_and_given_back(self, site: Site, team: Team) -> None:
        key = store(site, CredentialScope.NAMED_KEY, name="EU")
        browser, path = site.cast.client("admin"), self.page(site, key)
        sent = {"action": "update", "key_name": "Europe", "key_team": str(team.id)}
        answer = browser.post(path, sent, follow=True)
        row = Credential.objects.get()
        assert (row.name, row.team_id) == ("Europe", team.id)
        undo = answer.context["undo"]["fields"]
        assert undo == {"action": "update", "key_name": "EU", "key_team": ""}
        browser.post(path, undo)
        row = Credential.objects.get()
        assert (row.name, row.team_id, row.revision) == ("EU", None, 1)
        assert site.asked == []

    def test_a_taken_name_is_said_beside_it(self, site: Site, team: Team) -> None:
        store(site, CredentialScope.NAMED_KEY, name="Taken", team=team)
        key = store(site, CredentialScope.NAMED_KEY, name="EU")
        browser, path = site.cast.client("admin"), self.page(site, key)
        answer = browser.post(path, {"action": "update", "key_name": "Taken", "key_team": ""})
        assert answer.status_code == 422
        assert "Another key for this vendor already has this name. Choose a different one." in words(answer)
        answer = browser.post(path, {"action": "update", "key_name": "EU", "key_team": str(team.id)})
        assert answer.status_code == 422
        assert Credential.objects.get(pk=key.pk).team_id is None

    @pytest.mark.parametrize("who", REFUSED)
    def test_others_neither_see_nor_change_it(self, site: Site, who: str) -> None:
        key = store(site, CredentialScope.NAMED_KEY, name="EU")
        browser = site.cast.client(who)
        paths = [self.page(site, key), site.path("credentials:key-new", "fake"), f"{self.page(site, key)}/delete"]
        for path in paths:
            assert browser.get(path).status_code == REFUSED[who]
            for sent in ({"apiKey": NEW}, {"action": "update", "key_name": "Stolen", "key_team": ""}):
                assert browser.post(path, sent).status_code == REFUSED[who]
        row = Credential.objects.get()
        assert (row.name, row.revision) == ("EU", 1)
        assert site.asked == []

    def test_another_organizations_is_not_there(self, site: Site) -> None:
        other = {"name": "EU"}
        owner = site.cast.user("other_owner")
        foreign = connect(site.cast.other_org, owner, "fake", CredentialScope.NAMED_KEY, other, apiKey=SECRET)
        browser = site.owner()
        for path in (self.page(site, foreign), f"{self.page(site, foreign)}/delete"):
            assert browser.get(path).status_code == 404
            assert browser.post(path, {"apiKey": NEW}).status_code == 404
        assert Credential.objects.get().revision == 1


DELETES = {
    "organization": ("credentials:disconnect", ("fake",), "Fake"),
    "team": ("credentials:team-credential-delete", ("team", "fake"), "Night shift"),
    "key": ("credentials:key-delete", ("fake", "key"), "Reporting"),
    "agent": ("credentials:service-client-credential-delete", ("agent", "fake"), "agent"),
}
SCOPES = {"organization": "organization", "team": "team", "key": "named_key", "agent": "service_client"}


class TestDeleting:
    def address(self, site: Site, team: Team, kind: str, stored: dict[str, Credential]) -> tuple[str, str]:
        """The page, and the name that it asks for."""
        route, parts, name = DELETES[kind]
        client = site.tenant.client
        ids = {"team": str(team.id), "key": str(stored["key"].id), "agent": client.client_id}
        return site.path(route, *(ids.get(part, part) for part in parts)), client.name if name == "agent" else name

    def use(self, site: Site, kind: str, when: datetime, count: int = 2) -> None:
        caller = site.tenant.client.subject if kind == "agent" else "member"
        name = "Reporting" if kind == "key" else ""
        for _ in range(count):
            call(site, SCOPES[kind], caller, credential_name=name, timestamp=when)

    @pytest.mark.parametrize("kind", DELETES)
    def test_one_without_calls_goes_with_one_click(self, site: Site, team: Team, kind: str) -> None:
        stored = everything(site, team)
        path, _ = self.address(site, team, kind, stored)
        page = site.cast.client("admin").get(path)
        assert "No calls in the last 30 days." in words(page)
        assert "typed_name" not in text(page)
        assert site.cast.client("admin").post(path, {}).status_code == 302
        assert not Credential.objects.filter(pk=stored[kind].pk).exists()
        assert Credential.objects.count() == 3

    @pytest.mark.parametrize("kind", DELETES)
    def test_one_in_use_says_how_much_and_wants_its_name(self, site: Site, team: Team, kind: str) -> None:
        stored = everything(site, team)
        path, name = self.address(site, team, kind, stored)
        self.use(site, kind, clock.now() - timedelta(hours=1))
        self.use(site, kind, clock.now() - timedelta(days=9), count=3)
        self.use(site, kind, clock.now() - timedelta(days=31))
        add_row(org_id=site.cast.other_org.id, vendor="fake", credential_scope=SCOPES[kind], status="success")
        who = "0 members and 1 agent" if kind == "agent" else "1 member and 0 agents"
        browser = site.cast.client("admin")
        shown = browser.get(path)
        assert f"{who} used these credentials" in words(shown)
        assert "5 calls in the last 30 days, 2 in the last 24 hours." in words(shown)
        assert not Strict(text(shown)).inline
        for typed in ("", name.upper() + "x"):
            assert browser.post(path, {"typed_name": typed}).status_code == 422
        assert Credential.objects.count() == 4
        assert browser.post(path, {"typed_name": name}).status_code == 302
        assert not Credential.objects.filter(pk=stored[kind].pk).exists()
        assert Credential.objects.count() == 3

    @pytest.mark.parametrize("kind", DELETES)
    def test_older_calls_are_counted_and_want_no_name(self, site: Site, team: Team, kind: str) -> None:
        path, _ = self.address(site, team, kind, everything(site, team))
        self.use(site, kind, clock.now() - timedelta(days=9), count=1)
        shown = site.cast.client("admin").get(path)
        assert "1 call in the last 30 days, 0 in the last 24 hours." in words(shown)
        assert "typed_name" not in text(shown)

    @pytest.mark.parametrize("kind", DELETES)
    def test_calls_of_the_other_credentials_do_not_count(self, site: Site, team: Team, kind: str) -> None:
        path, _ = self.address(site, team, kind, everything(site, team))
        for other in DELETES:
            if other != kind:
                self.use(site, other, clock.now() - timedelta(hours=1))
        assert "No calls in the last 30 days." in words(site.cast.client("admin").get(path))

    @pytest.mark.parametrize("kind", DELETES)
    def test_denied_calls_do_not_count(self, site: Site, team: Team, kind: str) -> None:
        path, _ = self.address(site, team, kind, everything(site, team))
        call(site, SCOPES[kind], credential_name="Reporting" if kind == "key" else "", status="denied")
        assert "No calls in the last 30 days." in words(site.cast.client("admin").get(path))

    @pytest.mark.parametrize("who", REFUSED)
    def test_others_delete_nothing(self, site: Site, team: Team, who: str) -> None:
        stored = everything(site, team)
        for kind in DELETES:
            path, name = self.address(site, team, kind, stored)
            assert site.cast.client(who).get(path).status_code == REFUSED[who]
            assert site.cast.client(who).post(path, {"typed_name": name}).status_code == REFUSED[who]
        assert Credential.objects.count() == 4

    def test_the_organizations_are_not_deleted_from_another(self, site: Site) -> None:
        store_foreign(site)
        assert site.owner().get(site.path("credentials:disconnect", "fake")).status_code == 404
        assert site.owner().post(site.path("credentials:disconnect", "fake"), {}).status_code == 404
        assert Credential.objects.count() == 1

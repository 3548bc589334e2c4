"""A credential is flagged while its newest decisive call was rejected, and nobody else's ever is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import REJECTED
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.rejections import summaries_with_rejection
from credentials.selectors import credential_summaries
from credentials.services.keys import update_named_key
from orgs.models import Membership, Organization, Team, TeamMembership
from orgs.selectors import teams_by_person
from tests.api.audit.rows import add_row
from tests.factories.cast import Cast
from tests.factories.credentials import Setting, make_service_client

STORED = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
LATER = STORED + timedelta(hours=1)


@pytest.fixture(autouse=True)
def clock() -> Iterator[time_machine.Traveller]:
    """Everything is stored at STORED; calls are made afterwards."""
    with time_machine.travel(STORED, tick=False) as traveller:
        yield traveller


@pytest.fixture
def _two_hours_on(setting: Setting, clock: time_machine.Traveller) -> None:
    """Every scope has a credential; the other organization has one too. Now it is two hours later."""
    setting.store_everywhere()
    setting.store(organization=setting.cast.other_org)
    clock.move_to(STORED + timedelta(hours=2))


def call(cast: Cast, scope: CredentialScope, who: str = "member", **changes: Any) -> None:
    facts = {
        "org_id": cast.org.id,
        "user_id": str(cast.user(who).id) if who in cast.people else who,
        "timestamp": LATER,
        "credential_scope": scope.value,
        "credential_name": "Reporting" if scope is CredentialScope.NAMED_KEY else "",
        **changes,
    }
    add_row(**facts)


def reject(cast: Cast, scope: CredentialScope, who: str = "member", **changes: Any) -> None:
    call(cast, scope, who, **{"status": "error", "error_code": REJECTED, **changes})


def flagged(organization: Organization) -> dict[str, datetime]:
    """Times of rejections by name of the key, team or service client."""
    return {
        row.name or row.team_name or row.service_client_name or "organization": row.rejected_at
        for row in summaries_with_rejection(organization)
        if row.rejected_at
    }


def join(cast: Cast, team: Team, who: str) -> None:
    membership = Membership.objects.get(organization=cast.org, user=cast.user(who))
    TeamMembership.objects.create(team=team, membership=membership)


@pytest.mark.usefixtures("_two_hours_on")
class TestOneRejection:
    def test_none(self, setting: Setting) -> None:
        assert flagged(setting.cast.org) == {}
        with CaptureQueriesContext(connection) as queries:
            with_rejection = summaries_with_rejection(setting.cast.org)
        assert len(queries) == 2, "the credentials, and one look at the log for all of them"
        plain = credential_summaries(setting.cast.org)
        assert [row.id for row in with_rejection] == [row.id for row in plain]
        assert {field: getattr(with_rejection[0], field) for field in plain[0].__slots__} == {
            field: getattr(plain[0], field) for field in plain[0].__slots__
        }

    def test_of_the_organizations(self, setting: Setting) -> None:
        reject(setting.cast, CredentialScope.ORGANIZATION)
        assert flagged(setting.cast.org) == {"organization": LATER}
        assert flagged(setting.cast.other_org) == {}

    def test_of_another_organization(self, setting: Setting) -> None:
        reject(setting.cast, CredentialScope.ORGANIZATION, org_id=setting.cast.other_org.id)
        assert flagged(setting.cast.org) == {}
        assert flagged(setting.cast.other_org) == {"organization": LATER}

    def test_of_a_key(self, setting: Setting) -> None:
        setting.store(CredentialScope.NAMED_KEY, name="Ops")
        reject(setting.cast, CredentialScope.NAMED_KEY)
        assert flagged(setting.cast.org) == {"Reporting": LATER}

    def test_of_a_service_client(self, setting: Setting) -> None:
        other = make_service_client(setting.cast.org, "Other")
        setting.store(CredentialScope.SERVICE_CLIENT, service_client=other)
        for subject in ("svc:someone:else", setting.foreign_client.subject):
            reject(setting.cast, CredentialScope.SERVICE_CLIENT, subject)
        assert flagged(setting.cast.org) == {}
        reject(setting.cast, CredentialScope.SERVICE_CLIENT, setting.service_client.subject)
        assert flagged(setting.cast.org) == {"Robot": LATER}

    def test_of_another_vendor(self, setting: Setting) -> None:
        reject(setting.cast, CredentialScope.ORGANIZATION, vendor="globex")
        assert flagged(setting.cast.org) == {}

    def test_a_call_that_names_no_credential(self, setting: Setting) -> None:
        reject(setting.cast, CredentialScope.ORGANIZATION, credential_scope="")
        assert flagged(setting.cast.org) == {}


@pytest.fixture
def _two_teams(setting: Setting, clock: time_machine.Traveller) -> None:
    """Both teams have credentials for the vendor. The member is in the older team and in the younger, the admin in the
    younger one only."""
    setting.store(CredentialScope.TEAM)
    setting.store(CredentialScope.TEAM, team=setting.other_team)
    Team.objects.filter(pk=setting.team.pk).update(created_at=STORED - timedelta(days=2))
    Team.objects.filter(pk=setting.other_team.pk).update(created_at=STORED - timedelta(days=1))
    join(setting.cast, setting.other_team, "member")
    join(setting.cast, setting.team, "member")
    join(setting.cast, setting.other_team, "admin")
    clock.move_to(STORED + timedelta(hours=2))


@pytest.mark.usefixtures("_two_teams")
class TestTeams:
    """The log calls the credentials of all teams alike: the caller says whose they are."""

    @pytest.mark.parametrize(("who", "team"), [("member", "Night shift"), ("admin", "Day shift")])
    def test_the_callers_oldest_team_is_meant(self, setting: Setting, who: str, team: str) -> None:
        reject(setting.cast, CredentialScope.TEAM, who)
        assert flagged(setting.cast.org) == {team: LATER}

    def test_somebody_in_no_team_flags_none(self, setting: Setting) -> None:
        reject(setting.cast, CredentialScope.TEAM, "owner")
        assert flagged(setting.cast.org) == {}

    def test_a_colleague_lifts_it_and_another_team_does_not(self, setting: Setting) -> None:
        join(setting.cast, setting.team, "owner")
        reject(setting.cast, CredentialScope.TEAM, "member")
        call(setting.cast, CredentialScope.TEAM, "admin", timestamp=LATER + timedelta(minutes=1))
        assert flagged(setting.cast.org) == {"Night shift": LATER}
        call(setting.cast, CredentialScope.TEAM, "owner", timestamp=LATER + timedelta(minutes=1))
        assert flagged(setting.cast.org) == {}

    def test_teams_of_another_organization_are_not_looked_at(self, setting: Setting) -> None:
        owner = Membership.objects.get(organization=setting.cast.other_org)
        TeamMembership.objects.create(team=setting.foreign_team, membership=owner)
        ours = {setting.cast.user(who).id for who in ("member", "admin")}
        assert set(teams_by_person(setting.cast.org)) == ours
        assert teams_by_person(setting.cast.other_org) == {owner.user_id: [setting.foreign_team.id]}

    def test_queries_do_not_grow(self, setting: Setting) -> None:
        for who in ("member", "admin"):
            reject(setting.cast, CredentialScope.TEAM, who)
        with CaptureQueriesContext(connection) as queries:
            assert len(flagged(setting.cast.org)) == 2
        assert len(queries) == 4


@pytest.mark.usefixtures("_two_hours_on")
class TestLifting:
    """Events after a rejection that lift it, and others that do not."""

    @pytest.fixture(autouse=True)
    def _rejected(self, setting: Setting, _two_hours_on: None) -> None:
        for scope in (CredentialScope.ORGANIZATION, CredentialScope.NAMED_KEY):
            reject(setting.cast, scope)
            reject(setting.cast, scope, org_id=setting.cast.other_org.id)
        assert set(flagged(setting.cast.org)) == {"organization", "Reporting"}

    def test_a_later_success_lifts_that_one_only(self, setting: Setting) -> None:
        call(setting.cast, CredentialScope.ORGANIZATION, "owner", timestamp=LATER + timedelta(seconds=1))
        assert flagged(setting.cast.org) == {"Reporting": LATER}
        assert flagged(setting.cast.other_org) == {"organization": LATER}

    @pytest.mark.parametrize(
        "changes",
        [
            {"timestamp": LATER - timedelta(seconds=1)},
            {"timestamp": LATER + timedelta(seconds=1), "cached": True},
            {"timestamp": LATER + timedelta(seconds=1), "status": "error", "error_code": "vendor_timeout"},
        ],
    )
    def test_other_calls_lift_nothing(self, setting: Setting, changes: dict[str, Any]) -> None:
        call(setting.cast, CredentialScope.ORGANIZATION, **changes)
        assert flagged(setting.cast.org) == {"organization": LATER, "Reporting": LATER}

    def test_a_rejection_after_the_success_flags_again(self, setting: Setting) -> None:
        call(setting.cast, CredentialScope.ORGANIZATION, timestamp=LATER + timedelta(seconds=1))
        reject(setting.cast, CredentialScope.ORGANIZATION, timestamp=LATER + timedelta(seconds=2))
        assert flagged(setting.cast.org)["organization"] == LATER + timedelta(seconds=2)

    def test_replacing_lifts_it(self, setting: Setting) -> None:
        setting.store()
        assert flagged(setting.cast.org) == {"Reporting": LATER}
        assert flagged(setting.cast.other_org) == {"organization": LATER}

    def test_a_key_of_the_same_name_starts_anew(self, setting: Setting) -> None:
        Credential.objects.get(scope="named_key").delete()
        setting.store(CredentialScope.NAMED_KEY)
        assert flagged(setting.cast.org) == {"organization": LATER}

    def test_a_renamed_key_starts_anew(self, setting: Setting) -> None:
        key = Credential.objects.get(scope="named_key")
        update_named_key(
            actor=setting.cast.user("owner"),
            organization=setting.cast.org,
            key_id=key.id,
            vendor="acme",
            name="Ops",
            team_id=None,
        )
        setting.store(CredentialScope.NAMED_KEY)
        assert flagged(setting.cast.org) == {"organization": LATER}

    def test_a_week_later_nothing_is_known(self, setting: Setting, clock: time_machine.Traveller) -> None:
        clock.move_to(LATER + timedelta(days=7))
        assert set(flagged(setting.cast.org)) == {"organization", "Reporting"}
        clock.move_to(LATER + timedelta(days=7, seconds=1))
        assert flagged(setting.cast.org) == {}

"""Management tokens: how they are made, what a request with one is answered, and how they end."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings
from django.db import connection
from django.http import HttpResponse
from django.test import Client as Browser

from audit.actor import system
from audit.models import AdminAuditEntry
from gateway.lib import clock, management_token_format, secrets
from gateway.support.staff_actions import ORGANIZATION_ACTIONS
from gateway.web.token_authentication import EVERY
from oauth_ext.selectors import clients_shown_to
from oauth_ext.services.cleanup import TOKENS_KEPT, remove_expired_rows
from oauth_ext.services.deactivation import deactivate_person, reactivate_person
from orgs.models import Identity, ManagementToken, Membership
from orgs.roles import Role, TokenScope
from orgs.services.management_tokens import revoke_token
from orgs.services.members import change_role, leave_organization, remove_member
from tests.factories.api import Api
from tests.factories.cast import Cast
from tests.factories.credentials import make_service_client
from tests.factories.management_tokens import bearer_of, made_token

pytestmark = pytest.mark.django_db
READ, ADMIN = TokenScope.READ, TokenScope.ADMIN


@pytest.fixture
def stopped() -> Iterator[time_machine.Traveller]:
    """A clock that only `shift` moves."""
    with time_machine.travel(clock.now(), tick=False) as traveller:
        yield traveller


def send(token: str, method: str, path: str, body: object = None, **options: Any) -> HttpResponse:
    """A request without a session."""
    headers = {**bearer_of(token), **options.pop("headers", {})}
    data = json.dumps(body) if body is not None else ""
    browser: Browser = options.pop("browser", Browser())
    return browser.generic(method, path, data, content_type="application/json", headers=headers, **options)  # type: ignore[return-value]


def refusal(answer: HttpResponse) -> tuple[int, str]:
    return answer.status_code, json.loads(answer.content)["error"]


def org(cast: Cast) -> str:
    return f"/api/orgs/{cast.org.id}"


# Making


def test_a_token_is_made_shown_once_listed_and_revoked(api: Api) -> None:
    body = {"org_id": str(api.cast.org.id), "name": " Terraform ", "scope": "admin", "expires_in_days": 30}
    answer = api.send("member", "POST", "/profile/tokens", body)
    made = json.loads(answer.content)
    assert answer.status_code == 201
    row = ManagementToken.objects.get()
    parts = management_token_format.parse(made["token"])
    assert parts is not None
    assert bytes(row.secret_sha256) == secrets.sha256(parts.secret)
    assert (made["prefix"], made["name"], made["scope"]) == (row.prefix, "Terraform", "admin")
    assert row.expires_at - row.created_at == timedelta(days=30)
    listed = api.get("member", "/profile/tokens")
    assert [each["id"] for each in listed] == [made["id"]]
    assert made["token"] not in json.dumps(listed)
    assert api.get("owner", "/profile/tokens") == [], "another person's"
    assert api.refused("owner", "DELETE", f"/profile/tokens/{made['id']}") == (404, "not_found")
    assert send(made["token"], "GET", org(api.cast)).status_code == 200
    assert api.send("member", "DELETE", f"/profile/tokens/{made['id']}").status_code == 204
    assert refusal(send(made["token"], "GET", org(api.cast))) == (401, "unauthenticated")
    assert api.refused("member", "DELETE", f"/profile/tokens/{made['id']}") == (404, "not_found")
    events = [each for each in api.events() if each.startswith("management_token")]
    assert events == ["management_token.created", "management_token.first_used", "management_token.revoked"]
    logged = json.dumps(list(AdminAuditEntry.objects.values("metadata", "target_label", "actor_label")))
    assert row.prefix in logged
    assert parts.secret not in logged


def test_a_token_lasts_ninety_days_and_at_most_a_year(api: Api) -> None:
    body = {"org_id": str(api.cast.org.id), "name": "a", "scope": "read"}
    assert api.send("member", "POST", "/profile/tokens", body).status_code == 201
    row = ManagementToken.objects.get()
    assert row.expires_at - row.created_at == timedelta(days=90)
    assert api.send("member", "POST", "/profile/tokens", {**body, "expires_in_days": 365}).status_code == 201
    for days in (0, -1, 366, 1.5, "30", True, None):
        assert api.faults("member", "POST", "/profile/tokens", {**body, "expires_in_days": days}) == {"expires_in_days"}
    assert ManagementToken.objects.count() == 2


@pytest.mark.parametrize(
    ("change", "faults"),
    [
        ({"name": ""}, {"name"}),
        ({"name": "  "}, {"name"}),
        ({"name": "x" * 61}, {"name"}),
        ({"name": "a\u202eb"}, {"name"}),
        ({"name": 7}, {"name"}),
        ({"scope": "owner"}, {"scope"}),
        ({"scope": None}, {"scope"}),
        ({"scope": "READ"}, {"scope"}),
        ({"org_id": 7}, {"org_id"}),
    ],
)
def test_bad_input_makes_nothing(api: Api, change: dict[str, Any], faults: set[str]) -> None:
    body = {"org_id": str(api.cast.org.id), "name": "a", "scope": "read", **change}
    assert api.faults("member", "POST", "/profile/tokens", body) == faults
    assert not ManagementToken.objects.exists()


@pytest.mark.parametrize("named", ["x", "00000000-0000-4000-8000-000000000000", "other"])
def test_no_token_for_an_organization_of_others(api: Api, named: str) -> None:
    org_id = str(api.cast.other_org.id) if named == "other" else named
    body = {"org_id": org_id, "name": "a", "scope": "read"}
    assert api.refused("member", "POST", "/profile/tokens", body) == (404, "not_found")
    assert not ManagementToken.objects.exists()


def test_a_member_has_so_many_tokens(api: Api, settings: LazySettings) -> None:
    settings.MANAGEMENT_TOKENS_PER_MEMBER = 1
    body = {"org_id": str(api.cast.org.id), "name": "a", "scope": "read"}
    assert api.send("member", "POST", "/profile/tokens", body).status_code == 201
    assert api.refused("member", "POST", "/profile/tokens", body) == (409, "limit_reached")
    assert api.send("admin", "POST", "/profile/tokens", body).status_code == 201


# Requests


def test_a_token_stands_for_its_person_and_the_log_names_both(api: Api) -> None:
    token = made_token(api.cast, "admin", name="Terraform")
    answer = send(token, "POST", f"{org(api.cast)}/teams", {"name": "Night shift"})
    assert answer.status_code == 201, answer.content
    entry = AdminAuditEntry.objects.get(event_type="team.created")
    row = ManagementToken.objects.get()
    assert entry.actor_id == str(api.cast.user("admin").id)
    assert entry.actor_label == f"Admin (token Terraform, {row.prefix})"
    # The next request of the same thread is the person's own.
    assert api.send("admin", "POST", "/orgs/{org}/teams", {"name": "Day shift"}).status_code == 201
    assert AdminAuditEntry.objects.filter(event_type="team.created").order_by("id").last().actor_label == "Admin"  # type: ignore[union-attr]


def test_a_long_name_of_a_person_leaves_room_for_the_token(api: Api) -> None:
    person = api.cast.user("admin")
    person.display_name = "N" * 100
    person.save()
    token = made_token(api.cast, "admin", name="t" * 60)
    assert send(token, "POST", f"{org(api.cast)}/teams", {"name": "Night shift"}).status_code == 201
    label = AdminAuditEntry.objects.get(event_type="team.created").actor_label
    assert label.startswith("NNN")
    assert label.endswith(f"(token {'t' * 60}, {ManagementToken.objects.get().prefix})")


def test_the_organizations_of_a_token(api: Api) -> None:
    Membership.objects.create(organization=api.cast.other_org, user=api.cast.user("member"), role="owner")
    token = made_token(api.cast, "member", scope=READ)
    listed = json.loads(send(token, "GET", "/api/orgs").content)
    assert [each["id"] for each in listed] == [str(api.cast.org.id)]
    assert len(api.get("member", "/orgs")) == 2
    assert refusal(send(token, "GET", f"/api/orgs/{api.cast.other_org.id}")) == (404, "not_found")


def test_without_a_name_the_token_says_which_organization(api: Api) -> None:
    """Routes whose path names none: the earliest membership decides for a session, the token for itself."""
    later = Membership.objects.create(organization=api.cast.other_org, user=api.cast.user("owner"), role="owner")
    Membership.objects.filter(pk=later.pk).update(joined_at=clock.now() + timedelta(days=1))
    token = made_token(api.cast, "owner", scope=READ, organization=api.cast.other_org)
    rows = json.loads(send(token, "GET", "/api/audit/admin").content)
    assert {each["id"] for each in rows["entries"]} == {
        str(key) for key in AdminAuditEntry.objects.filter(org_id=api.cast.other_org.id).values_list("id", flat=True)
    }


def test_the_role_of_the_moment_counts(api: Api) -> None:
    token = made_token(api.cast, "admin")
    assert send(token, "GET", f"{org(api.cast)}/teams").status_code == 200
    change_role(
        actor=api.cast.user("owner"), organization=api.cast.org, user_id=api.cast.user("admin").id, role=Role.MEMBER
    )
    assert refusal(send(token, "GET", f"{org(api.cast)}/teams")) == (403, "forbidden")
    assert refusal(send(token, "POST", f"{org(api.cast)}/teams", {"name": "x"})) == (403, "forbidden")
    assert send(token, "GET", org(api.cast)).status_code == 200
    change_role(
        actor=api.cast.user("owner"), organization=api.cast.org, user_id=api.cast.user("admin").id, role=Role.ADMIN
    )
    assert send(token, "GET", f"{org(api.cast)}/teams").status_code == 200


def test_wrong_tokens_are_401_with_a_challenge(api: Api) -> None:
    token = made_token(api.cast, "owner")
    prefix, _, secret = token.rpartition("_")
    other = made_token(api.cast, "member")
    wrong = [
        f"{prefix}_{secrets.random_base62(43)}",
        f"{prefix}_{other.rpartition('_')[2]}",
        f"gwt_{secrets.random_base62(12)}_{secret}",
        token[:-1],
        f"{token}x",
        "gwt_",
        "gwt_é",
        f"gwt_{'a' * 8_000}",
    ]
    for each in wrong:
        answer = send(each, "GET", org(api.cast))
        assert refusal(answer) == (401, "unauthenticated")
        assert answer["WWW-Authenticate"] == 'Bearer realm="gateway", error="invalid_token"'
        assert secret not in answer.content.decode()
    assert send(token, "GET", org(api.cast)).status_code == 200
    anonymous = Browser().get(org(api.cast))
    assert anonymous["WWW-Authenticate"] == 'Session realm="gateway", Bearer realm="gateway"'


def test_a_wrong_token_is_not_made_good_by_a_session(api: Api) -> None:
    browser = api.cast.client("owner")
    answer = send("gwt_wrong", "GET", org(api.cast), browser=browser)
    assert refusal(answer) == (401, "unauthenticated")
    reader = made_token(api.cast, "member", scope=READ)
    assert refusal(send(reader, "PATCH", org(api.cast), {"name": "x"}, browser=browser)) == (403, "token_scope_too_low")
    assert browser.get(org(api.cast)).status_code == 200


def test_other_bearers_change_nothing_about_a_session(api: Api) -> None:
    browser = api.cast.client("owner")
    assert browser.get(org(api.cast), headers={"Authorization": "Bearer cak_x"}).status_code == 200
    assert Browser().get(org(api.cast), headers={"Authorization": "Bearer cak_x"}).status_code == 401
    assert Browser().get(org(api.cast), headers={"Authorization": "Basic gwt_x"}).status_code == 401


@pytest.mark.parametrize("name", ["access_token", "token", "org_id", "anything"])
def test_a_token_in_the_address_is_refused(api: Api, name: str) -> None:
    token = made_token(api.cast, "owner")
    for query in (f"?{name}={token}", f"?{name}={token.replace('_', '%5F')}"):
        bare = Browser().get(org(api.cast) + query)
        assert refusal(bare) == (401, "unauthenticated")
        assert "address" in json.loads(bare.content)["message"]
        assert api.cast.client("owner").get(org(api.cast) + query).status_code == 401
        assert send(token, "GET", org(api.cast) + query).status_code == 401


def test_a_token_needs_no_protection_against_other_sites_and_a_session_does(api: Api) -> None:
    token = made_token(api.cast, "owner")
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        url, body = f"{org(api.cast)}/teams", {"name": f"Team {len(headers)} {next(iter(headers))}"}
        assert send(token, "POST", url, body, headers=headers).status_code == 201
        browser = api.cast.client("owner")
        plain = browser.post(url, json.dumps(body), content_type="application/json", headers=headers)
        assert refusal(plain) == (403, "cross_site")  # type: ignore[arg-type]
        wrong = send("gwt_wrong", "POST", url, body, headers=headers, browser=browser)
        assert refusal(wrong) == (401, "unauthenticated")
        disguised = {**headers, "Authorization": "Bearer cak_x"}
        refused = browser.post(url, json.dumps(body), content_type="application/json", headers=disguised)
        assert refusal(refused) == (403, "cross_site")  # type: ignore[arg-type]


def test_guessing_is_throttled_by_address_and_known_tokens_go_on(api: Api, settings: LazySettings) -> None:
    settings.FAILED_AUTHS = type(settings.FAILED_AUTHS)("refused-bearers", limit=3, window_s=60)
    known, unseen = made_token(api.cast, "owner"), made_token(api.cast, "admin")
    guesser = {"REMOTE_ADDR": "10.9.9.9"}
    assert send(known, "GET", org(api.cast), **guesser).status_code == 200
    for _ in range(3):
        assert send("gwt_guess", "GET", org(api.cast), **guesser).status_code == 401
    refused = send("gwt_guess", "GET", org(api.cast), **guesser)
    assert refusal(refused) == (429, "rate_limited")
    assert int(refused["Retry-After"]) > 0
    assert send(unseen, "GET", org(api.cast), **guesser).status_code == 429, "nobody learns that it is right"
    assert send(known, "GET", org(api.cast), **guesser).status_code == 200
    assert send(unseen, "GET", org(api.cast), REMOTE_ADDR="10.9.9.8").status_code == 200


def test_a_secret_is_in_no_log_line(api: Api, caplog: pytest.LogCaptureFixture, capsys: Any) -> None:
    token = made_token(api.cast, "owner")
    with caplog.at_level(logging.DEBUG):
        send(token, "GET", org(api.cast))
        send(token, "GET", "/api/nothing")
        send(token, "GET", f"{org(api.cast)}?x={token}")
        send(token, "GET", f"{org(api.cast)}/members/{token}")
    secret = token.rpartition("_")[2]
    captured = capsys.readouterr()
    assert secret not in captured.out + captured.err


def test_the_last_use_is_written_once_in_five_minutes(api: Api, stopped: time_machine.Traveller) -> None:
    token = made_token(api.cast, "owner")
    assert send(token, "GET", org(api.cast)).status_code == 200
    first = ManagementToken.objects.get().last_used_at
    assert first == clock.now()
    for later, expected in ((EVERY - timedelta(seconds=1), first), (timedelta(seconds=1), first + EVERY)):
        stopped.shift(later)
        assert send(token, "GET", org(api.cast)).status_code == 200
        assert ManagementToken.objects.get().last_used_at == expected
    assert AdminAuditEntry.objects.filter(event_type="management_token.first_used").count() == 1


# Ends


def test_an_expired_token_is_refused_and_listed_for_a_month(api: Api, stopped: time_machine.Traveller) -> None:
    token = made_token(api.cast, "owner", days=1)
    stopped.shift(timedelta(days=1) - timedelta(seconds=1))
    assert send(token, "GET", org(api.cast)).status_code == 200
    stopped.shift(timedelta(seconds=1))
    assert refusal(send(token, "GET", org(api.cast))) == (401, "unauthenticated")
    remove_expired_rows(now=clock.now())
    assert ManagementToken.objects.count() == 1
    remove_expired_rows(now=clock.now() + TOKENS_KEPT)
    assert not ManagementToken.objects.exists()


def test_a_token_ends_with_the_membership_and_stays_ended(api: Api) -> None:
    cast = api.cast
    left, removed, kept = (made_token(cast, who) for who in ("admin", "member", "owner"))
    leave_organization(actor=cast.user("admin"), organization=cast.org)
    remove_member(actor=cast.user("owner"), organization=cast.org, user_id=cast.user("member").id)
    for who in ("admin", "member"):
        Membership.objects.create(organization=cast.org, user=cast.user(who), role="owner")
    assert [send(each, "GET", org(cast)).status_code for each in (left, removed, kept)] == [401, 401, 200]


def test_a_token_ends_with_the_persons_deactivation_and_stays_ended(api: Api) -> None:
    token = made_token(api.cast, "admin")
    person = api.cast.user("admin")
    deactivate_person(actor=system("test"), user_id=person.pk)
    assert refusal(send(token, "GET", org(api.cast))) == (401, "unauthenticated")
    reactivate_person(actor=system("test"), user_id=person.pk)
    assert refusal(send(token, "GET", org(api.cast))) == (401, "unauthenticated")


def test_a_token_of_a_person_whom_the_identity_provider_refuses(api: Api) -> None:
    token = made_token(api.cast, "admin")
    Identity.objects.filter(user=api.cast.user("admin")).update(refused_at=clock.now())
    answer = send(token, "GET", org(api.cast))
    assert refusal(answer) == (401, "unauthenticated")
    assert "identity provider" in json.loads(answer.content)["message"]
    assert ManagementToken.objects.get().last_used_at is None


def test_a_token_ends_with_its_organization(api: Api) -> None:
    token = made_token(api.cast, "owner")
    assert api.send("owner", "DELETE", "/orgs/{org}").status_code == 204
    assert refusal(send(token, "GET", org(api.cast))) == (401, "unauthenticated")


@pytest.mark.django_db(transaction=True)
def test_of_many_first_uses_and_revocations_one_is_written(cast: Cast) -> None:
    token = made_token(cast, "owner")
    key = ManagementToken.objects.get().pk

    def closing(work: Any) -> Any:
        try:
            return work()
        except Exception as fault:  # counted below
            return type(fault).__name__
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: closing(lambda: send(token, "GET", org(cast)).status_code), range(16)))
        ended = list(
            threads.map(lambda _: closing(lambda: revoke_token(actor=cast.user("owner"), token_id=key).name), range(16))
        )
    assert set(answers) == {200}
    assert sorted(ended) == ["NotFound"] * 15 + ["deploy"]
    events = list(
        AdminAuditEntry.objects.filter(event_type__startswith="management_token").values_list("event_type", flat=True)
    )
    assert sorted(events) == [
        "management_token.created",
        "management_token.first_used",
        "management_token.revoked",
    ]


def test_the_agents_that_a_token_was_shown_the_keys_of_are_named(api: Api) -> None:
    """Keys are the organization's and outlive token and person: who ends either learns which to rotate."""
    cast, token = api.cast, made_token(api.cast, "admin", name="Terraform")
    own = json.loads(send(token, "POST", f"{org(cast)}/service-clients", {"name": "Deploy bot"}).content)
    other = make_service_client(cast.org, "Bot of nobody")
    assert send(token, "POST", f"{org(cast)}/service-clients/{own['client_id']}/agent-key").status_code == 201
    by_hand = api.send("admin", "POST", f"/orgs/{cast.org.pk}/service-clients", {"name": "Bot by hand"})
    assert by_hand.status_code == 201
    row = ManagementToken.objects.get()
    assert [client.name for client in clients_shown_to(cast.org, cast.user("admin"), token=row)] == ["Deploy bot"]
    assert clients_shown_to(cast.other_org, cast.user("admin")) == []
    page = cast.client("admin").get(f"/profile/tokens/{row.pk}/revoke").content.decode()
    assert "They keep working: Deploy bot." in page
    removal = cast.client("owner").get(f"/orgs/{cast.org.pk}/people/{cast.user('admin').pk}/remove").content.decode()
    assert "a key or secret of these agents: Bot by hand, Deploy bot." in removal
    assert other.name not in page + removal
    consequences = list(ORGANIZATION_ACTIONS["revoke-token"].consequences(row))
    assert consequences[1:] == [
        "A script with it was shown a key or secret of these agents, which keep working: Deploy bot."
    ]

"""grant_type=refresh_token: rotation, the grace period, and the end of a family that two parties hold."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import jwt
import pytest

from audit.models import AdminAuditEntry
from gateway.lib import clock
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import AccessToken, RefreshToken, TokenFamily
from orgs.models import User
from tests.api.oauth_ext.conftest import Service, post
from tests.api.oauth_ext.flow import Flow, make_flow, make_public_client
from tests.api.oauth_ext.test_code_grant import INVALID_GRANT, nothing_was_given, outcomes
from tests.api.oauth_ext.test_token import UNIFIED, read, refusal
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.factories.races import at_once
from tests.factories.tenant import load_vendor


@pytest.fixture
def flow(cast: Cast) -> Flow:
    return make_flow(cast)


def used_ago(seconds: float) -> None:
    """Every used refresh token was used so many seconds ago."""
    RefreshToken.objects.filter(revoked__isnull=False).update(revoked=clock.now() - timedelta(seconds=seconds))


def test_each_token_gives_the_next_pair(cast: Cast, flow: Flow) -> None:
    first = flow.tokens()
    answer = flow.refresh(first["refresh_token"])
    assert answer.status_code == 200
    second = answer.json()
    assert set(second) == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
    assert second["refresh_token"] != first["refresh_token"]
    assert second["scope"] == "mcp:all"
    assert (answer["Cache-Control"], answer["Pragma"]) == ("no-store", "no-cache")
    claims = read(second["access_token"])
    assert (claims["sub"], claims["org_id"]) == (str(cast.user("member").id), str(cast.org.id))
    load_identity(first["access_token"])  # other processes of the client still use it
    third = flow.refresh(second["refresh_token"]).json()
    assert TokenFamily.objects.count() == 1
    assert [row.generation for row in RefreshToken.objects.order_by("generation")] == [0, 1, 2]
    assert flow.refresh(third["refresh_token"]).status_code == 200


@pytest.mark.usefixtures("stopped_clock")
def test_an_answer_that_got_lost(flow: Flow) -> None:
    first = flow.tokens()["refresh_token"]
    lost, found = flow.refresh(first).json(), flow.refresh(first).json()
    assert lost["refresh_token"] != found["refresh_token"]
    used_ago(89)
    assert flow.refresh(first).status_code == 200
    for pair in (lost, found):
        load_identity(pair["access_token"])
    assert flow.refresh(found["refresh_token"]).status_code == 200
    assert flow.refresh(lost["refresh_token"]).status_code == 200  # two processes, each with its own branch
    assert TokenFamily.objects.count() == 1


def test_a_generation_has_five_children_more_at_most(flow: Flow) -> None:
    first = flow.tokens()["refresh_token"]
    answers = [flow.refresh(first) for _ in range(9)]
    assert [answer.status_code for answer in answers] == [200] * 6 + [400] * 3
    assert {refusal(answer) for answer in answers[6:]} == {INVALID_GRANT}
    assert flow.refresh(answers[3].json()["refresh_token"]).status_code == 200
    assert TokenFamily.objects.exists()
    assert not AdminAuditEntry.objects.filter(event_type="oauth.refresh_reuse_detected").exists()


def is_dead(*pairs: dict[str, str]) -> bool:
    """Neither half of any pair is accepted."""
    for pair in pairs:
        with pytest.raises(InvalidBearer):
            load_identity(pair["access_token"])
    return nothing_was_given()


def test_a_late_second_use_ends_the_family(cast: Cast, flow: Flow) -> None:
    first = flow.tokens()
    second = flow.refresh(first["refresh_token"]).json()
    used_ago(91)
    assert refusal(flow.refresh(first["refresh_token"])) == INVALID_GRANT
    assert is_dead(first, second)
    assert refusal(flow.refresh(second["refresh_token"])) == INVALID_GRANT
    entry = AdminAuditEntry.objects.get(event_type="oauth.refresh_reuse_detected")
    assert (entry.org_id, entry.actor_id, entry.actor_label) == (cast.org.id, "system", "System (token server)")
    assert (entry.target_id, entry.target_label) == (str(flow.client.id), "Some agent")
    assert entry.metadata == {
        "client_id": flow.client.client_id,
        "scope": "mcp:all",
        "user_id": str(cast.user("member").id),
        "user": "Member",
        "generation": 0,
    }
    assert entry.ip_address == "127.0.0.1"


def test_an_older_generation_ends_the_family_at_once(flow: Flow) -> None:
    first = flow.tokens()
    second = flow.refresh(first["refresh_token"]).json()
    third = flow.refresh(second["refresh_token"]).json()
    assert refusal(flow.refresh(first["refresh_token"])) == INVALID_GRANT
    assert is_dead(first, second, third)
    assert AdminAuditEntry.objects.filter(event_type="oauth.refresh_reuse_detected").count() == 1


def test_one_family_ends_alone(cast: Cast, flow: Flow) -> None:
    other = Flow(flow.client, cast.client("owner"))
    theirs = other.tokens()
    first = flow.tokens()
    flow.refresh(first["refresh_token"])
    used_ago(91)
    assert refusal(flow.refresh(first["refresh_token"])) == INVALID_GRANT
    load_identity(theirs["access_token"])
    assert other.refresh(theirs["refresh_token"]).status_code == 200


def test_another_client_changes_nothing(cast: Cast, flow: Flow, service: Service) -> None:
    first = flow.tokens()
    stranger = make_public_client()
    assert refusal(flow.refresh(first["refresh_token"], client_id=stranger.client_id)) == INVALID_GRANT
    as_service = {"client_id": service.client.client_id, "client_secret": service.secret}
    assert refusal(flow.refresh(first["refresh_token"], **as_service)) == INVALID_GRANT
    second = flow.refresh(first["refresh_token"]).json()
    used_ago(91)
    assert refusal(flow.refresh(first["refresh_token"], client_id=stranger.client_id)) == INVALID_GRANT
    load_identity(second["access_token"])
    assert flow.refresh(second["refresh_token"]).status_code == 200


def test_clients_that_are_not_known_any_more(flow: Flow) -> None:
    first = flow.tokens()
    assert refusal(flow.refresh(first["refresh_token"], client_id="")) == (401, "invalid_client")
    assert refusal(flow.refresh(first["refresh_token"], client_secret="x")) == (401, "invalid_client")
    flow.client.delete()
    assert refusal(flow.refresh(first["refresh_token"])) == (401, "invalid_client")


@pytest.mark.parametrize("sent", ["x", "x" * 10_000, "' OR 1=1--"])
def test_tokens_nobody_knows(flow: Flow, sent: str) -> None:
    assert refusal(flow.refresh(sent)) == INVALID_GRANT


def test_a_token_must_be_sent(flow: Flow) -> None:
    assert refusal(flow.refresh("")) == (400, "invalid_request")


@pytest.mark.usefixtures("stopped_clock")
def test_a_token_dies_after_thirty_idle_days(flow: Flow) -> None:
    first = flow.tokens()["refresh_token"]
    RefreshToken.objects.update(created=clock.now() - timedelta(days=30) + timedelta(seconds=5))
    second = flow.refresh(first).json()["refresh_token"]
    RefreshToken.objects.update(created=clock.now() - timedelta(days=30))
    assert refusal(flow.refresh(second)) == INVALID_GRANT


@pytest.mark.usefixtures("stopped_clock")
def test_a_family_dies_after_half_a_year(flow: Flow) -> None:
    first = flow.tokens()["refresh_token"]
    TokenFamily.objects.update(expires_at=clock.now() + timedelta(seconds=5))
    second = flow.refresh(first).json()["refresh_token"]
    TokenFamily.objects.update(expires_at=clock.now())
    assert refusal(flow.refresh(second)) == INVALID_GRANT


@pytest.mark.parametrize(
    ("granted", "asked", "given"),
    [
        ("mcp:all", "mcp:acme", "mcp:acme"),
        ("mcp", "mcp:all", "mcp:all"),
        ("mcp:acme mcp:zeta", "mcp:zeta", "mcp:zeta"),
        ("mcp:acme mcp:zeta", "", "mcp:acme mcp:zeta"),
    ],
)
def test_less_may_be_asked_for(flow: Flow, vendor: str, granted: str, asked: str, given: str) -> None:
    load_vendor("https://vendor.example/mcp", slug="zeta")
    first = flow.tokens(scope=granted)
    second = flow.refresh(first["refresh_token"], scope=asked).json()
    assert second["scope"] == given
    assert read(second["access_token"])["scope"] == given
    assert flow.refresh(second["refresh_token"]).json()["scope"] == granted  # the granted scope is not lost


@pytest.mark.parametrize(
    ("granted", "asked"),
    [
        ("mcp:acme", "mcp:all"),
        ("mcp:acme", "mcp"),
        ("mcp:acme", "mcp:acme mcp:zeta"),
        ("mcp:all", "mcp:nope"),
        ("mcp:all", "admin"),
        ("mcp:all", " "),
    ],
)
def test_more_may_not(flow: Flow, vendor: str, granted: str, asked: str) -> None:
    load_vendor("https://vendor.example/mcp", slug="zeta")
    first = flow.tokens(scope=granted)["refresh_token"]
    assert refusal(flow.refresh(first, scope=asked)) == (400, "invalid_scope")
    assert flow.refresh(first).status_code == 200


def test_the_audience_may_be_narrowed(flow: Flow, vendor: str) -> None:
    first = flow.tokens()["refresh_token"]
    narrow = flow.refresh(first, resource="http://testserver/v1/acme/mcp").json()
    audience = jwt.decode(narrow["access_token"], options={"verify_signature": False})["aud"]
    assert audience == "http://testserver/v1/acme/mcp"
    wide = flow.refresh(narrow["refresh_token"], resource=UNIFIED).json()
    assert read(wide["access_token"])["aud"] == UNIFIED
    foreign = flow.refresh(wide["refresh_token"], resource="https://else.example/")
    assert refusal(foreign) == (400, "invalid_target")


def test_whoever_left_the_organization_is_out(cast: Cast, flow: Flow) -> None:
    first = flow.tokens()
    cast.org.memberships.get(user=cast.user("member")).delete()
    assert refusal(flow.refresh(first["refresh_token"])) == INVALID_GRANT
    assert is_dead(first)


def test_a_deactivated_person_is_out(cast: Cast, flow: Flow) -> None:
    first = flow.tokens()
    User.objects.filter(pk=cast.user("member").pk).update(is_active=False)
    assert refusal(flow.refresh(first["refresh_token"])) == INVALID_GRANT


def test_client_credentials_still_give_no_refresh_token(service: Service) -> None:
    assert "refresh_token" not in post(service.fields()).json()
    assert not RefreshToken.objects.exists()
    assert AccessToken.objects.get().token_family is None


@pytest.mark.django_db(transaction=True)
def test_a_thief_and_its_victim_at_the_same_moment(committed_cast: Cast) -> None:
    flow = make_flow(committed_cast)
    stolen = flow.tokens()["refresh_token"]
    current = flow.refresh(flow.refresh(stolen).json()["refresh_token"]).json()["refresh_token"]
    answers = at_once(*[partial(flow.refresh, current), partial(flow.refresh, stolen)] * 5)
    assert set(outcomes(answers)) <= {200, 400}
    assert nothing_was_given()  # in either order, no token of the family outlives it


def test_a_branch_that_goes_on_ends_those_of_the_grace_period(flow: Flow) -> None:
    """A thief used the token a moment after its owner; the owner goes on working."""
    first = flow.tokens()["refresh_token"]
    owners, stolen = (flow.refresh(first).json()["refresh_token"] for _ in range(2))
    stolen = flow.refresh(stolen).json()["refresh_token"]
    owners = flow.refresh(owners).json()["refresh_token"]
    assert RefreshToken.objects.filter(revoked=None).count() == 2
    latest = flow.refresh(owners)
    assert latest.status_code == 200
    assert RefreshToken.objects.filter(revoked=None).count() == 1
    assert refusal(flow.refresh(stolen)) == INVALID_GRANT
    assert flow.refresh(latest.json()["refresh_token"]).status_code == 200  # whom it belongs to is not held up


def test_the_first_branch_is_ended_by_none(flow: Flow) -> None:
    first = flow.tokens()["refresh_token"]
    owners, stolen = (flow.refresh(first).json()["refresh_token"] for _ in range(2))
    for _ in range(3):
        stolen = flow.refresh(stolen).json()["refresh_token"]
    for _ in range(2):
        owners = flow.refresh(owners).json()["refresh_token"]
    assert refusal(flow.refresh(stolen)) == INVALID_GRANT
    assert flow.refresh(owners).status_code == 200


def test_branches_of_other_families_and_generations_stay(cast: Cast, flow: Flow) -> None:
    other = Flow(flow.client, cast.client("owner"))
    theirs = other.tokens()["refresh_token"]
    kept = [other.refresh(theirs).json()["refresh_token"] for _ in range(3)]
    token = flow.tokens()["refresh_token"]
    for _ in range(4):  # every answer but the last of each generation gets lost
        lost = [flow.refresh(token).json()["refresh_token"] for _ in range(2)]
        token = lost[-1]
    live = RefreshToken.objects.filter(revoked=None, token_family__user=cast.user("member"))
    assert live.filter(in_grace=True).count() <= 2
    assert [other.refresh(each).status_code for each in kept] == [200] * 3


def test_a_use_in_the_grace_period_is_in_the_log(cast: Cast, flow: Flow) -> None:
    first = flow.tokens()["refresh_token"]
    flow.refresh(first)
    assert not AdminAuditEntry.objects.filter(event_type="oauth.refresh_grace_used").exists()
    for _ in range(3):
        second = flow.refresh(first).json()["refresh_token"]
    entry = AdminAuditEntry.objects.get(event_type="oauth.refresh_grace_used")
    assert (entry.org_id, entry.target_label, entry.ip_address) == (cast.org.id, "Some agent", "127.0.0.1")
    assert (entry.metadata["generation"], entry.metadata["user"]) == (0, "Member")
    assert second not in str(entry.metadata)


def test_the_page_of_apps_counts_the_branches(cast: Cast, flow: Flow) -> None:
    first = flow.tokens()["refresh_token"]
    page = flow.browser.get(f"/orgs/{cast.org.id}/apps")
    assert "Its sign-in is in use in" not in page.content.decode()
    for _ in range(3):
        flow.refresh(first)
    page = flow.browser.get(f"/orgs/{cast.org.id}/apps")
    assert "Its sign-in is in use in 3 places" in page.content.decode()

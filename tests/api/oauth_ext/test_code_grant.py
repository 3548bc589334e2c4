"""grant_type=authorization_code: one code gives one token family, and a second redemption none."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import jwt
import pytest

from audit.models import AdminAuditEntry
from gateway.lib import clock, secrets
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import AccessToken, Client, Grant, RefreshToken, TokenFamily
from oauth_ext.services.cleanup import remove_expired_rows
from orgs.models import User
from tests.api.oauth_ext.conftest import Service, basic, post
from tests.api.oauth_ext.flow import LOOPBACK, WEB, Flow, make_flow, make_public_client
from tests.api.oauth_ext.test_token import UNIFIED, read, refusal
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast

INVALID_GRANT = (400, "invalid_grant")


@pytest.fixture
def flow(cast: Cast) -> Flow:
    return make_flow(cast)


def nothing_was_given() -> bool:
    return not (AccessToken.objects.exists() or RefreshToken.objects.exists() or TokenFamily.objects.exists())


def test_a_code_gives_tokens(cast: Cast, flow: Flow) -> None:
    answer = flow.redeem(flow.code())
    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
    assert (body["token_type"], body["expires_in"], body["scope"]) == ("Bearer", 3600, "mcp:all")
    assert (answer["Cache-Control"], answer["Pragma"]) == ("no-store", "no-cache")
    claims = read(body["access_token"])
    member = cast.user("member")
    assert (claims["sub"], claims["org_id"]) == (str(member.id), str(cast.org.id))
    assert (claims["client_id"], claims["aud"]) == (flow.client.client_id, UNIFIED)
    identity = load_identity(body["access_token"])
    assert (identity.subject, identity.user_id, identity.org_id) == (str(member.id), member.id, cast.org.id)
    family = TokenFamily.objects.get()
    assert (family.user, family.approved_by, family.redirect_host) == (member, member, "app.example")
    assert timedelta(days=179) < family.expires_at - clock.now() <= timedelta(days=180)


def test_nothing_stored_can_be_used(flow: Flow) -> None:
    code = flow.code()
    body = flow.redeem(code).json()
    grant, refresh, access = Grant.objects.get(), RefreshToken.objects.get(), AccessToken.objects.get()
    assert grant.code == secrets.sha256(code).hex()
    assert (refresh.token, refresh.token_checksum) == ("", secrets.sha256(body["refresh_token"]).hex())
    assert (access.token, access.token_checksum) == ("", secrets.sha256(body["access_token"]).hex())
    assert refusal(flow.redeem(grant.code)) == INVALID_GRANT
    assert refusal(flow.refresh(refresh.token_checksum)) == INVALID_GRANT


@pytest.mark.parametrize("scope", ["mcp", "mcp:all", "mcp:acme", "mcp:acme mcp"])
def test_the_scope_is_the_one_consented_to(flow: Flow, vendor: str, scope: str) -> None:
    body = flow.tokens(scope=scope)
    assert body["scope"] == scope
    assert read(body["access_token"])["scope"] == scope


@pytest.mark.parametrize(
    ("consented", "asked", "audience"),
    [
        (None, None, UNIFIED),
        (UNIFIED, None, UNIFIED),
        (None, f"{UNIFIED}/", UNIFIED),
        ("http://testserver", UNIFIED, UNIFIED),
        (None, "http://testserver/v1/acme/mcp", "http://testserver/v1/acme/mcp"),
        ("http://testserver/v1/acme/mcp", None, "http://testserver/v1/acme/mcp"),
    ],
)
def test_the_audience_equals_or_narrows_what_was_consented_to(
    flow: Flow, vendor: str, consented: str | None, asked: str | None, audience: str
) -> None:
    answer = flow.redeem(flow.code(resource=consented), resource=asked)
    claims = jwt.decode(answer.json()["access_token"], options={"verify_signature": False})
    assert claims["aud"] == audience


@pytest.mark.parametrize("asked", [UNIFIED, "https://else.example/", "http://testserver/v1/nope/mcp"])
def test_another_audience(flow: Flow, vendor: str, asked: str) -> None:
    code = flow.code(resource="http://testserver/v1/acme/mcp")
    assert refusal(flow.redeem(code, resource=asked)) == (400, "invalid_target")
    assert nothing_was_given()
    assert flow.redeem(code).status_code == 200


@pytest.mark.parametrize("missing", ["code", "redirect_uri", "code_verifier"])
def test_what_must_be_there(flow: Flow, missing: str) -> None:
    code = flow.code()
    assert refusal(flow.redeem(code, **{missing: None})) == (400, "invalid_request")
    assert flow.redeem(code).status_code == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"code": "x" * 43},
        {"code_verifier": "x" * 43},
        {"code_verifier": "x" * 42},
        {"code_verifier": "x" * 129},
        {"code_verifier": "!" * 43},
        {"redirect_uri": "https://app.example/other"},
        {"redirect_uri": f"{WEB}/"},
        {"redirect_uri": LOOPBACK},
    ],
)
def test_what_the_code_is_bound_to(flow: Flow, wrong: dict[str, str]) -> None:
    code = flow.code()
    assert refusal(flow.redeem(code, **wrong)) == INVALID_GRANT
    assert nothing_was_given()
    assert flow.redeem(code).status_code == 200  # a wrong guess does not burn the code


def test_the_challenge_itself_is_no_verifier(flow: Flow) -> None:
    code = flow.code()
    assert refusal(flow.redeem(code, code_verifier=Grant.objects.get().code_challenge)) == INVALID_GRANT


def test_another_client(cast: Cast, flow: Flow) -> None:
    code = flow.code()
    other = make_public_client()
    assert refusal(flow.redeem(code, client_id=other.client_id)) == INVALID_GRANT
    assert flow.redeem(code).status_code == 200
    assert refusal(flow.redeem(code, client_id=other.client_id)) == INVALID_GRANT
    assert TokenFamily.objects.exists()  # only its own client can end what the code gave


@pytest.mark.usefixtures("stopped_clock")
def test_a_code_lives_for_a_minute(flow: Flow) -> None:
    code = flow.code()
    Grant.objects.update(expires=clock.now() + timedelta(seconds=5))
    live = flow.code()
    assert flow.redeem(live).status_code == 200
    Grant.objects.filter(redeemed_at=None).update(expires=clock.now() - timedelta(seconds=1))
    assert refusal(flow.redeem(code)) == INVALID_GRANT


def test_whoever_comes_second_ends_what_the_first_one_got(cast: Cast, flow: Flow) -> None:
    code = flow.code()
    body = flow.redeem(code).json()
    later = flow.refresh(body["refresh_token"]).json()
    assert refusal(flow.redeem(code)) == INVALID_GRANT
    for token in (body["access_token"], later["access_token"]):
        with pytest.raises(InvalidBearer, match="revoked"):
            load_identity(token)
    for token in (body["refresh_token"], later["refresh_token"]):
        assert refusal(flow.refresh(token)) == INVALID_GRANT
    assert nothing_was_given()
    entry = AdminAuditEntry.objects.get(event_type="oauth.code_reuse_detected")
    assert (entry.org_id, entry.actor_id, entry.target_id) == (cast.org.id, "system", str(flow.client.id))
    assert entry.metadata["user_id"] == str(cast.user("member").id)
    assert entry.ip_address == "127.0.0.1"
    assert refusal(flow.redeem(code)) == INVALID_GRANT
    assert AdminAuditEntry.objects.filter(event_type="oauth.code_reuse_detected").count() == 1


def test_a_second_use_is_seen_after_the_code_expired(flow: Flow) -> None:
    code = flow.code()
    flow.redeem(code)
    hour_ago = clock.now() - timedelta(hours=1)
    Grant.objects.update(expires=hour_ago, redeemed_at=hour_ago)
    remove_expired_rows(now=clock.now())
    assert refusal(flow.redeem(code)) == INVALID_GRANT
    assert nothing_was_given()


def test_the_redirect_address_may_spell_its_empty_path(cast: Cast) -> None:
    flow = make_flow(cast, redirect_uri="http://127.0.0.1:33418")
    Client.objects.filter(pk=flow.client.pk).update(redirect_uris="http://127.0.0.1:1/")
    assert flow.redeem(flow.code(), redirect_uri="http://127.0.0.1:33418/").status_code == 200
    assert refusal(flow.redeem(flow.code(), redirect_uri="http://127.0.0.1:1/")) == INVALID_GRANT


def test_an_unknown_or_deleted_client(flow: Flow) -> None:
    code = flow.code()
    assert refusal(flow.redeem(code, client_id="mcpc_unknown")) == (401, "invalid_client")
    assert refusal(flow.redeem(code, client_id=None)) == (401, "invalid_client")
    flow.client.delete()
    assert refusal(flow.redeem(code)) == (401, "invalid_client")


def test_how_a_public_client_may_name_itself(flow: Flow) -> None:
    fields = {
        "grant_type": "authorization_code",
        "code": flow.code(),
        "redirect_uri": WEB,
        "code_verifier": flow.verifier,
    }
    wrong = basic(flow.client.client_id, "invented")
    assert refusal(post(fields, Authorization=wrong)) == (401, "invalid_client")
    assert refusal(flow.redeem(fields["code"], client_secret="invented")) == (401, "invalid_client")
    assert post(fields, Authorization=basic(flow.client.client_id, "")).status_code == 200


def test_a_service_client_has_no_codes(cast: Cast, flow: Flow, service: Service) -> None:
    answer = flow.redeem(flow.code(), client_id=service.client.client_id, client_secret=service.secret)
    assert refusal(answer) == (400, "unauthorized_client")


def test_whoever_left_the_organization_gets_nothing(cast: Cast, flow: Flow) -> None:
    code = flow.code()
    membership = cast.org.memberships.get(user=cast.user("member"))
    membership.delete()
    assert refusal(flow.redeem(code)) == INVALID_GRANT
    membership.save()
    User.objects.filter(pk=cast.user("member").pk).update(is_active=False)
    assert refusal(flow.redeem(code)) == INVALID_GRANT
    assert nothing_was_given()


def outcomes(answers: list[Any]) -> list[object]:
    """Status codes in order, exceptions as themselves."""
    return sorted((getattr(answer, "status_code", answer) for answer in answers), key=str)

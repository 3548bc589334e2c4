"""POST /oauth/revoke."""

from __future__ import annotations

from functools import partial

import pytest
from asgiref.sync import async_to_sync
from django.http import HttpResponse
from django.test import Client as Browser

from gateway.coordination import epochs
from gateway.coordination.backend import current
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import AccessToken, TokenFamily
from tests.api.oauth_ext.conftest import Service, basic, post
from tests.api.oauth_ext.flow import Flow, make_flow, make_public_client
from tests.api.oauth_ext.test_code_grant import INVALID_GRANT, nothing_was_given, outcomes
from tests.api.oauth_ext.test_token import refusal
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.factories.races import at_once


@pytest.fixture
def flow(cast: Cast) -> Flow:
    return make_flow(cast)


def revoke(token: str | None, Authorization: str = "", **fields: str) -> HttpResponse:  # noqa: N803
    """POST a token to be revoked."""
    known = {} if token is None else {"token": token}
    headers = {"Authorization": Authorization} if Authorization else {}
    return post({**known, **fields}, "/oauth/revoke", **headers)


def is_done(answer: HttpResponse) -> bool:
    """200 without a body, never cached, open to every origin."""
    assert answer.status_code == 200, answer.content
    assert answer.content == b""
    assert (answer["Cache-Control"], answer["Pragma"]) == ("no-store", "no-cache")
    assert answer["Access-Control-Allow-Origin"] == "*"
    return True


def is_refused(access_token: str) -> bool:
    with pytest.raises(InvalidBearer, match="revoked"):
        load_identity(access_token)
    return True


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
@pytest.mark.parametrize("hint", ["", "access_token", "refresh_token", "nonsense"])
def test_both_halves_die_together(flow: Flow, which: str, hint: str) -> None:
    first = flow.tokens()
    second = flow.refresh(first["refresh_token"]).json()
    assert is_done(revoke(second[which], token_type_hint=hint))
    assert is_refused(first["access_token"])
    assert is_refused(second["access_token"])
    for pair in (first, second):
        assert refusal(flow.refresh(pair["refresh_token"])) == INVALID_GRANT
    assert nothing_was_given()


def test_one_grace_child_takes_its_sisters_along(flow: Flow) -> None:
    first = flow.tokens()["refresh_token"]
    children = [flow.refresh(first).json() for _ in range(3)]
    assert is_done(revoke(children[1]["refresh_token"]))
    assert all(is_refused(child["access_token"]) for child in children)
    assert refusal(flow.refresh(first)) == INVALID_GRANT  # also inside the grace period


def test_unknown_and_revoked_tokens(flow: Flow) -> None:
    token = flow.tokens()["access_token"]
    assert all(is_done(revoke(token)) for _ in range(2))
    for unknown in ("x", "cak_abcdefghijkl_secret", token + "x", "' OR 1=1--", "x" * 8_000):
        assert is_done(revoke(unknown))


def test_the_other_authorizations_live(cast: Cast, flow: Flow) -> None:
    other = Flow(flow.client, cast.client("owner"))
    theirs, mine = other.tokens(), flow.tokens()
    assert is_done(revoke(mine["refresh_token"], client_id=flow.client.client_id))
    load_identity(theirs["access_token"])
    assert TokenFamily.objects.count() == 1


def test_a_token_of_a_service_client(service: Service) -> None:
    tokens = [service.token() for _ in range(3)]
    kept = service.token()
    assert is_done(revoke(tokens[0]))
    assert is_done(revoke(tokens[1], Authorization=service.basic))
    credentials = {"client_id": service.client.client_id, "client_secret": service.secret}
    assert is_done(revoke(tokens[2], **credentials))
    assert all(is_refused(token) for token in tokens)
    load_identity(kept)


def test_another_clients_token_is_left_alone(cast: Cast, flow: Flow, service: Service) -> None:
    tokens, machine = flow.tokens(), service.token()
    stranger = make_public_client()
    assert is_done(revoke(tokens["access_token"], client_id=stranger.client_id))
    assert is_done(revoke(tokens["refresh_token"], Authorization=service.basic))
    assert is_done(revoke(machine, client_id=flow.client.client_id))
    load_identity(tokens["access_token"])
    load_identity(machine)
    assert flow.refresh(tokens["refresh_token"]).status_code == 200


def test_wrong_credentials(flow: Flow, service: Service) -> None:
    machine = service.token()
    client_id = service.client.client_id
    for fields in (
        {"client_id": client_id},
        {"client_id": client_id, "client_secret": "wrong"},
        {"client_id": "svc_unknown", "client_secret": service.secret},
        {"client_id": "mcpc_unknown"},
        {"client_secret": service.secret},
        {"client_id": flow.client.client_id, "client_secret": "invented"},
    ):
        answer = revoke(machine, **fields)
        assert refusal(answer) == (401, "invalid_client"), fields
        assert "WWW-Authenticate" not in answer
    for header in (basic(client_id, "wrong"), basic("svc_unknown", "x"), "Basic", "Basic !!!"):
        answer = revoke(machine, Authorization=header)
        assert refusal(answer) == (401, "invalid_client"), header
        assert answer["WWW-Authenticate"] == 'Basic realm="oauth"'
    both = revoke(machine, Authorization=service.basic, client_secret=service.secret)
    assert refusal(both) == (400, "invalid_request")
    load_identity(machine)


def test_a_token_must_be_sent(db: None) -> None:
    assert refusal(revoke(None)) == (400, "invalid_request")
    assert refusal(revoke("")) == (400, "invalid_request")
    assert refusal(post("token=a&token=b", "/oauth/revoke")) == (400, "invalid_request")
    assert refusal(post("{}", "/oauth/revoke", content_type="application/json")) == (400, "invalid_request")
    assert refusal(post({"token": "a"}, "/oauth/revoke?token=b")) == (400, "invalid_request")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_other_methods(db: None, method: str) -> None:
    assert refusal(Browser().generic(method, "/oauth/revoke")) == (405, "invalid_request")
    assert Browser().options("/oauth/revoke")["Access-Control-Allow-Methods"] == "POST, OPTIONS"


def epoch_of(cast: Cast) -> tuple[str, ...] | None:
    """The member's epoch, which every process compares before it uses its cache."""

    async def read() -> tuple[str, ...] | None:
        try:
            return await current().read_epochs([epochs.subject(str(cast.user("member").id))])
        finally:
            await current().aclose()

    return async_to_sync(read)()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
def test_every_process_is_notified(committed_cast: Cast, which: str) -> None:
    tokens = make_flow(committed_cast).tokens()
    before = epoch_of(committed_cast)
    revoke(tokens[which])
    assert epoch_of(committed_cast) != before


@pytest.mark.django_db(transaction=True)
def test_revoking_while_refreshing(committed_cast: Cast) -> None:
    flow = make_flow(committed_cast)
    first = flow.tokens()["refresh_token"]
    answers = at_once(*[partial(flow.refresh, first), partial(revoke, first)] * 8)
    assert set(outcomes(answers)) <= {200, 400}
    assert nothing_was_given()
    assert not AccessToken.objects.exists()

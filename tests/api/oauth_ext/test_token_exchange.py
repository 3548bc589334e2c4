"""A service client exchanges a person's token for one with which it acts for the person. docs/decisions/0109"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import jwt
import pytest
import time_machine
from django.http import HttpResponse

from gateway.lib import clock
from oauth_ext import features, issuer_keys
from oauth_ext.bearer import InvalidBearer
from oauth_ext.grants.token_exchange import ACCESS_TOKEN, IDENTITY_ASSERTION
from oauth_ext.models import AccessToken, RefreshToken
from oauth_ext.services.acting import set_acting
from oauth_ext.services.service_clients import delete_service_client, rotate_client_secret
from oauth_ext.services.token_families import end_family
from orgs.services.members import remove_member
from tests.api.oauth_ext.conftest import Service, make_service, post
from tests.api.oauth_ext.flow import Flow, make_flow
from tests.api.oauth_ext.test_assertion_grant import World, allow
from tests.api.oauth_ext.test_token import refusal
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.fakes.assertion_provider import running_provider

INVALID_REQUEST = (400, "invalid_request")


@pytest.fixture
def acting(cast: Cast, service: Service) -> Service:
    """An agent that may act for people."""
    allow(cast, service)
    return service


@pytest.fixture
def flow(cast: Cast) -> Flow:
    """The member's own app."""
    return make_flow(cast)


@pytest.fixture
def no_known_keys() -> Iterator[None]:
    """Keys of an issuer at an address of an earlier test are not kept."""
    issuer_keys.forget()
    yield
    issuer_keys.forget()


def exchange(service: Service, subject: str, **fields: str) -> HttpResponse:
    """POST the person's token to the token endpoint, as the agent."""
    known = {
        "grant_type": features.TOKEN_EXCHANGE,
        "subject_token": subject,
        "subject_token_type": ACCESS_TOKEN,
        **fields,
    }
    return post(service.fields(**known))


def test_subject_and_actor_are_both_in_the_token(cast: Cast, acting: Service, flow: Flow) -> None:
    subject = flow.tokens()["access_token"]
    answer = exchange(acting, subject)
    assert answer.status_code == 200, answer.content
    body = answer.json()
    token, expires_in = body.pop("access_token"), body.pop("expires_in")
    assert body == {"token_type": "Bearer", "scope": "mcp:all", "issued_token_type": ACCESS_TOKEN}
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["sub"] == str(cast.user("member").pk)
    assert claims["act"] == {"sub": acting.client.subject}
    assert claims["client_id"] == acting.client.client_id
    identity = load_identity(token)
    assert (identity.user_id, identity.client_id) == (cast.user("member").pk, acting.client.client_id)
    # It ends no later than the token that it was given for.
    assert 0 < expires_in <= 3600
    assert claims["exp"] <= jwt.decode(subject, options={"verify_signature": False})["exp"] + 1
    assert RefreshToken.objects.count() == 1  # the app's own


def test_it_ends_no_later_than_the_persons_token(acting: Service, flow: Flow) -> None:
    subject = flow.tokens()["access_token"]
    with time_machine.travel(clock.now() + timedelta(minutes=50)):
        assert 500 < exchange(acting, subject).json()["expires_in"] <= 600
    with time_machine.travel(clock.now() + timedelta(minutes=61)):
        assert refusal(exchange(acting, subject)) == INVALID_REQUEST


def test_scopes_and_resources_only_narrow(acting: Service, flow: Flow, vendor: str) -> None:
    subject = flow.tokens(scope="mcp:acme", resource="http://testserver/v1/acme/mcp")["access_token"]
    assert exchange(acting, subject, scope="mcp:all").json()["scope"] == "mcp:acme"
    assert refusal(exchange(acting, subject, scope="mcp:nothing")) == (400, "invalid_scope")
    assert refusal(exchange(acting, subject, resource="http://testserver/v1/mcp")) == (400, "invalid_target")
    assert refusal(exchange(acting, subject, audience="https://else.example")) == (400, "invalid_target")
    token = exchange(acting, subject, audience="http://testserver").json()["access_token"]
    assert load_identity(token).audiences == ("http://testserver/v1/acme/mcp",)


def test_what_is_no_token_of_a_person_of_the_organization(cast: Cast, acting: Service, flow: Flow) -> None:
    subject = flow.tokens()["access_token"]
    another = make_service(cast, organization=cast.other_org)
    set_acting(actor=cast.user("other_owner"), organization=cast.other_org, client=another.client, acts_for_people=True)
    assert refusal(exchange(another, subject)) == INVALID_REQUEST
    assert refusal(exchange(acting, acting.token())) == INVALID_REQUEST
    assert refusal(exchange(acting, "abc")) == INVALID_REQUEST
    assert refusal(exchange(acting, subject[:-3] + "abc")) == INVALID_REQUEST
    acted = exchange(acting, subject).json()["access_token"]
    assert refusal(exchange(acting, acted)) == INVALID_REQUEST
    for fields in (
        {"subject_token_type": "urn:ietf:params:oauth:token-type:id_token"},
        {"requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token"},
        {"actor_token": subject, "actor_token_type": ACCESS_TOKEN},
    ):
        assert refusal(exchange(acting, subject, **fields)) == INVALID_REQUEST
    assert refusal(exchange(acting, "")) == INVALID_REQUEST


def test_an_agent_acts_for_nobody_by_default(service: Service, flow: Flow) -> None:
    assert refusal(exchange(service, flow.tokens()["access_token"])) == (400, "unauthorized_client")


def test_a_public_client_acts_for_nobody(flow: Flow) -> None:
    fields = {
        "grant_type": features.TOKEN_EXCHANGE,
        "subject_token": flow.tokens()["access_token"],
        "subject_token_type": ACCESS_TOKEN,
        "client_id": flow.client.client_id,
    }
    assert refusal(post(fields)) == (400, "unauthorized_client")


@pytest.mark.parametrize("end", ["app", "member", "agent", "secret", "permission"])
def test_what_ends_it(cast: Cast, acting: Service, flow: Flow, end: str) -> None:
    owner = cast.user("owner")
    subject = flow.tokens()["access_token"]
    token = exchange(acting, subject).json()["access_token"]
    load_identity(token)
    match end:
        case "app":
            end_family(
                AccessToken.objects.select_related("token_family").filter(application=flow.client)[0].token_family
            )
        case "member":
            remove_member(actor=owner, organization=cast.org, user_id=cast.user("member").pk)
        case "agent":
            delete_service_client(actor=owner, client=acting.client)
        case "secret":
            rotate_client_secret(actor=owner, client=acting.client)
        case "permission":
            set_acting(actor=owner, organization=cast.org, client=acting.client, acts_for_people=False)
    with pytest.raises(InvalidBearer):
        load_identity(token)
    if end in {"app", "member"}:
        assert refusal(exchange(acting, subject)) == INVALID_REQUEST
    else:
        load_identity(subject)


def test_the_agent_revokes_its_own_token_only(acting: Service, flow: Flow) -> None:
    subject = flow.tokens()["access_token"]
    token = exchange(acting, subject).json()["access_token"]
    fields = {"token": token, "client_id": acting.client.client_id, "client_secret": acting.secret}
    assert post(fields, path="/oauth/revoke").status_code == 200
    with pytest.raises(InvalidBearer):
        load_identity(token)
    load_identity(subject)


def test_an_assertion_as_the_subject(cast: Cast, no_known_keys: None) -> None:
    with running_provider() as provider:
        world = World(cast, provider)
        assertion = world.assertion()
        answer = exchange(world.service, assertion, subject_token_type=IDENTITY_ASSERTION)
        assert load_identity(answer.json()["access_token"]).user_id == cast.user("member").pk
        assert answer.json()["issued_token_type"] == ACCESS_TOKEN
        assert refusal(exchange(world.service, assertion, subject_token_type=IDENTITY_ASSERTION)) == INVALID_REQUEST
        assert refusal(exchange(world.service, "abc", subject_token_type=IDENTITY_ASSERTION)) == INVALID_REQUEST

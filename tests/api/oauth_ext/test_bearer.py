"""Resolving a bearer to its subject."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import time_machine
from oauth2_provider.models import set_token_value
from pytest_django import DjangoAssertNumQueries

from gateway.lib import clock, secrets
from oauth_ext import agent_key_format
from oauth_ext.bearer import BearerIdentity, InvalidBearer, looks_like_agent_key, record_use, record_uses
from oauth_ext.jwt import mint
from oauth_ext.models import AccessToken, AgentKey, Client
from oauth_ext.services.agent_keys import mint_agent_key
from oauth_ext.services.service_clients import delete_service_client
from tests.api.oauth_ext.conftest import Service, make_service
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.factories.management_tokens import made_token

UNIFIED = "http://testserver/v1/mcp"


def refused(text: str) -> str:
    """Why `text` is refused; the reason never repeats it."""
    with pytest.raises(InvalidBearer) as refusal:
        load_identity(text)
    assert len(text) < 4 or text not in str(refusal.value)
    return refusal.value.reason


def token_of_a_person(cast: Cast, client: Client, **row: Any) -> str:
    """A token of the member, minted and stored as a grant for people will do it."""
    person = cast.user("member")
    request = SimpleNamespace(client=client, user=person, organization_id=cast.org.id, scopes=["mcp:acme"], resource=[])
    token = mint.access_token(request)
    values = {"user": person, "application": client, "organization": cast.org, "scope": "mcp:acme", **row}
    stored = AccessToken(expires=clock.now() + timedelta(hours=1), **values)
    set_token_value(stored, token)
    stored.save()
    return token


def agent_key(cast: Cast, service: Service) -> str:
    return mint_agent_key(actor=cast.user("owner"), client=service.client).agent_key


def test_a_service_client_by_token(service: Service, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    token = service.token(scope="mcp")
    with django_assert_num_queries(1):
        found = load_identity(token)
    client = service.client
    assert found == BearerIdentity(
        kind="jwt",
        subject=f"svc:{client.organization_id}:{client.client_id}",
        org_id=client.organization_id,
        user_id=None,
        client_pk=client.pk,
        client_id=client.client_id,
        client_name="build bot",
        scopes=frozenset({"mcp"}),
        audiences=(UNIFIED,),
        expires_at=found.expires_at,
    )
    assert timedelta(minutes=59) < found.expires_at - clock.now() <= timedelta(hours=1)


def test_a_service_client_by_agent_key(
    cast: Cast, service: Service, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    key = agent_key(cast, service)
    with django_assert_num_queries(1):
        found = load_identity(key)
    by_token = load_identity(service.token())
    assert (found.kind, found.scopes, found.audiences) == ("agent_key", {"mcp:all"}, (UNIFIED,))
    assert found.expires_at == service.client.expires_at
    for name in ("subject", "org_id", "user_id", "client_pk", "client_id", "client_name"):
        assert getattr(found, name) == getattr(by_token, name)


def test_a_person(cast: Cast, public_client: Client) -> None:
    found = load_identity(token_of_a_person(cast, public_client))
    member = cast.user("member")
    assert (found.subject, found.user_id, found.org_id) == (str(member.id), member.id, cast.org.id)
    assert (found.client_id, found.client_name) == (public_client.client_id, "Some agent")
    assert found.scopes == {"mcp:acme"}


@pytest.mark.parametrize(
    "text",
    ["", " ", "a b", "tok\nen", "té", "a" * 8193, "=", "a=b", "\x00", "sk-ant-123", "eyJhbGciOiJub25lIn0.e30.", "cak_"],
)
def test_what_is_no_bearer_costs_no_query(
    db: None, text: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    AccessToken.objects.exists()
    with pytest.raises(InvalidBearer):
        load_identity("a.b.c")  # loads the signing keys, which are kept from then on
    with django_assert_num_queries(0):
        assert refused(text)


def test_a_management_token_is_refused_in_words_and_without_a_query(
    cast: Cast, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    token = made_token(cast, "owner")
    with pytest.raises(InvalidBearer):
        load_identity("a.b.c")  # loads the signing keys, which are kept from then on
    with django_assert_num_queries(0):
        reasons = {refused(token), refused("gwt_"), refused(f"{token}x")}
    assert reasons == {"A management token is for /api only. Use an agent key or an OAuth access token here."}


def test_an_agent_key_that_is_not_one(cast: Cast, service: Service) -> None:
    parts = agent_key_format.parse(agent_key(cast, service))
    assert parts is not None
    other = secrets.random_base62(43)
    reasons = {
        refused(f"{parts.prefix}_{other}"),
        refused(f"cak_{secrets.random_base62(12)}_{parts.secret}"),
        refused(f"{parts.prefix}_{parts.secret}x"),
        refused(f"{parts.prefix}_"),
    }
    assert len(reasons) == 1  # the refusal does not tell which half was wrong


def test_an_agent_key_of_an_expired_or_deleted_client(cast: Cast, service: Service) -> None:
    key, token = agent_key(cast, service), service.token()
    Client.objects.update(expires_at=clock.now() - timedelta(seconds=1))
    assert "expired" in refused(key)
    assert "expired" in refused(token)
    delete_service_client(actor=cast.user("owner"), client=service.client)
    assert refused(key) == "The agent key is not valid."
    assert refused(token) == "The access token was revoked."


@pytest.mark.usefixtures("stopped_clock")
def test_a_token_expires(service: Service) -> None:
    token = service.token()
    with time_machine.travel(clock.now() + timedelta(seconds=3599)):
        assert load_identity(token).kind == "jwt"
    with time_machine.travel(clock.now() + timedelta(seconds=3601)):
        assert refused(token) == "The access token has expired."


def test_an_identity_does_not_outlive_its_client(cast: Cast, service: Service) -> None:
    soon = clock.now() + timedelta(minutes=10)
    Client.objects.update(expires_at=soon)
    assert load_identity(service.token()).expires_at == soon


def test_a_revoked_token(service: Service) -> None:
    token, other = service.token(), service.token()
    AccessToken.objects.get(token_checksum=secrets.sha256(token).hex()).delete()
    assert refused(token) == "The access token was revoked."
    assert load_identity(other).kind == "jwt"


def test_a_token_of_a_deleted_organization(cast: Cast, service: Service, public_client: Client) -> None:
    tokens = [service.token(), token_of_a_person(cast, public_client), agent_key(cast, service)]
    cast.org.delete()
    for token in tokens:
        assert refused(token)


def test_a_token_of_a_deleted_or_disabled_person(cast: Cast, public_client: Client) -> None:
    token = token_of_a_person(cast, public_client)
    member = cast.user("member")
    member.is_active = False
    member.save()
    assert refused(token) == "The access token was revoked."
    member.delete()
    assert refused(token) == "The access token was revoked."


def test_a_token_that_contradicts_its_record(cast: Cast, service: Service, public_client: Client) -> None:
    for changes in (
        {"organization": cast.other_org},
        {"user": cast.user("stranger")},
        {"application": make_service(cast).client},
        {"user": None, "application": service.client},
    ):
        assert (
            refused(token_of_a_person(cast, public_client, **changes)) == "The access token does not match its record."
        )


def test_a_token_whose_record_has_expired(cast: Cast, public_client: Client) -> None:
    token = token_of_a_person(cast, public_client)
    AccessToken.objects.update(expires=clock.now())
    assert refused(token) == "The access token was revoked."


def test_looks_like_agent_key(cast: Cast, service: Service) -> None:
    assert looks_like_agent_key(agent_key(cast, service))
    assert looks_like_agent_key("cak_anything")
    assert not looks_like_agent_key(service.token())
    assert not looks_like_agent_key("")


def test_use_is_noted_once_in_five_minutes(cast: Cast, service: Service) -> None:
    agent_key(cast, service)
    start = clock.now()

    def noted() -> tuple[Any, Any]:
        return Client.objects.get().last_used_at, AgentKey.objects.get().last_used_at

    record_use(service.client.pk, now=start)
    assert noted() == (start, None)
    keys = [AgentKey.objects.get().pk]
    record_uses([service.client.pk], keys, start + timedelta(minutes=4))
    assert noted() == (start, start + timedelta(minutes=4))
    record_use(service.client.pk, now=start + timedelta(minutes=4))
    assert noted()[0] == start
    record_uses([service.client.pk], keys, start + timedelta(minutes=5))
    assert noted() == (start + timedelta(minutes=5), start + timedelta(minutes=4))

"""Identity assertions of an organization's provider at the token endpoint. docs/decisions/0109"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from django.http import HttpResponse
from django.test import Client as Browser
from pytest_django.fixtures import Settings

from audit.models import AdminAuditEntry
from gateway.lib import clock
from oauth_ext import features, issuer_keys
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import LinkedSubject, RefreshToken, TokenFamily, TrustedIssuer, UsedAssertion
from oauth_ext.services.acting import set_acting
from oauth_ext.services.cleanup import remove_expired_rows
from oauth_ext.services.trusted_issuers import Wanted, add_issuer, remove_issuer
from orgs.models import Identity, MailDomain
from orgs.services.members import remove_member
from tests.api.oauth_ext.conftest import Service, make_service, post
from tests.api.oauth_ext.test_token import refusal
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.factories.races import at_once
from tests.fakes.assertion_provider import AssertionProvider, new_key, public_jwk, running_provider

UNIFIED = "http://testserver/v1/mcp"
INVALID_GRANT = (400, "invalid_grant")


@pytest.fixture(autouse=True)
def no_known_keys() -> Iterator[None]:
    """Keys of an issuer at an address of an earlier test are not kept."""
    issuer_keys.forget()
    yield
    issuer_keys.forget()


@pytest.fixture(scope="module")
def provider_of_module() -> Iterator[AssertionProvider]:
    """One server for the file."""
    with running_provider() as provider:
        yield provider


@pytest.fixture
def provider(provider_of_module: AssertionProvider) -> AssertionProvider:
    """As it starts."""
    provider_of_module.answers, provider_of_module.asked = {}, []
    return provider_of_module


class World:
    """An organization that trusts the provider and owns example.com, and an agent that may act for people."""

    def __init__(self, cast: Cast, provider: AssertionProvider, **wanted: Any) -> None:
        self.cast, self.provider = cast, provider
        self.service = make_service(cast)
        allow(cast, self.service)
        MailDomain.objects.create(organization=cast.org, domain="example.com", confirmed_at=clock.now())
        self.trust = add_issuer(actor=cast.user("owner"), organization=cast.org, wanted=Wanted(provider.url, **wanted))

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Those of an assertion about the member."""
        known = {
            "audience": "http://testserver",
            "client_id": self.service.client.client_id,
            "subject": "m-1",
            "email": "member@example.com",
            "resource": UNIFIED,
        }
        return self.provider.claims(**{**known, **changes})

    def assertion(self, **changes: Any) -> str:
        """About the member."""
        return self.provider.sign(self.claims(**changes))

    def present(self, assertion: str, **fields: str) -> HttpResponse:
        """POST it to the token endpoint."""
        return post(self.service.fields(grant_type=features.JWT_BEARER, assertion=assertion, **fields))

    def token(self, **changes: Any) -> str:
        """An access token for an assertion."""
        answer = self.present(self.assertion(**changes))
        assert answer.status_code == 200, answer.content
        return str(answer.json()["access_token"])


def allow(cast: Cast, service: Service) -> None:
    """The agent may act for people."""
    set_acting(actor=cast.user("owner"), organization=cast.org, client=service.client, acts_for_people=True)


@pytest.fixture
def world(cast: Cast, provider: AssertionProvider) -> World:
    """See World."""
    return World(cast, provider)


def test_an_assertion_gives_a_short_token_of_the_person(world: World) -> None:
    answer = world.present(world.assertion(scope="mcp"))
    assert answer.status_code == 200, answer.content
    assert answer["Cache-Control"] == "no-store"
    body = answer.json()
    token = body.pop("access_token")
    assert body == {"token_type": "Bearer", "expires_in": 3600, "scope": "mcp"}
    claims = jwt.decode(token, options={"verify_signature": False})
    member = world.cast.user("member")
    assert (claims["sub"], claims["aud"]) == (str(member.pk), UNIFIED)
    assert claims["org_id"] == str(world.cast.org.pk)
    assert claims["act"] == {"sub": world.service.client.subject}
    identity = load_identity(token)
    assert (identity.user_id, identity.client_id) == (member.pk, world.service.client.client_id)
    assert not RefreshToken.objects.exists()
    linked = AdminAuditEntry.objects.get(event_type="trusted_issuer.subject_linked")
    assert linked.target_id == str(member.pk)
    assert linked.metadata == {"issuer": world.provider.url, "subject": "m-1"}


@pytest.mark.parametrize("algorithm", ["RS256", "PS256"])
def test_other_kinds_of_keys(cast: Cast, algorithm: str) -> None:
    with running_provider(algorithm) as provider:
        World(cast, provider, algorithms=[algorithm]).token()


def test_the_subject_stays_bound_when_addresses_change(world: World) -> None:
    world.token()
    # The address is another member's by now; the subject decides.
    token = world.token(email="admin@example.com")
    assert load_identity(token).user_id == world.cast.user("member").pk
    assert LinkedSubject.objects.count() == 1
    assert TokenFamily.objects.filter(trusted_issuer=world.trust).count() == 1


def test_a_person_who_signed_in_at_the_same_issuer_needs_no_address(world: World) -> None:
    admin = world.cast.user("admin")
    Identity.objects.create(user=admin, issuer=world.provider.url, sub="a-1")
    assert load_identity(world.token(subject="a-1", email=None)).user_id == admin.pk


@pytest.mark.parametrize(
    "changes",
    [
        {"email": None},
        {"email": "member@else.example"},
        {"email": "nobody@example.com"},
        {"email": "stranger@example.com"},
        {"email": "member@example.com", "email_verified": False},
        {"email": "member@example.com", "email_verified": "true"},
    ],
)
def test_a_person_who_cannot_be_recognized(world: World, changes: dict[str, Any]) -> None:
    assert refusal(world.present(world.assertion(**changes))) == INVALID_GRANT
    assert not LinkedSubject.objects.exists()
    assert not UsedAssertion.objects.exists()


def test_the_domain_must_be_confirmed_and_the_members_address_verified(world: World) -> None:
    MailDomain.objects.update(confirmed_at=None)
    assert refusal(world.present(world.assertion())) == INVALID_GRANT
    MailDomain.objects.update(confirmed_at=clock.now(), organization=world.cast.other_org)
    assert refusal(world.present(world.assertion())) == INVALID_GRANT
    MailDomain.objects.update(organization=world.cast.org)
    member = world.cast.user("member")
    member.email_verified = False
    member.save()
    assert refusal(world.present(world.assertion())) == INVALID_GRANT


def hour_ago(world: World) -> dict[str, Any]:
    now_s = int(time.time())
    return world.claims(iat=now_s - 3600, exp=now_s - 1)


CLAIMS: dict[str, Callable[[World], dict[str, Any]]] = {
    "expired": hour_ago,
    "not yet": lambda world: world.claims(nbf=int(time.time()) + 120),
    "issued later": lambda world: world.claims(iat=int(time.time()) + 120),
    "too long": lambda world: world.claims(exp=int(time.time()) + 3700),
    "no end": lambda world: world.claims(exp=None),
    "no beginning": lambda world: world.claims(iat=None),
    "no id": lambda world: world.claims(jti=None),
    "no subject": lambda world: world.claims(sub=None),
    "foreign audience": lambda world: world.claims(audience="https://else.example"),
    "audience with a slash": lambda world: world.claims(audience="http://testserver/"),
    "two audiences": lambda world: world.claims(audience=["http://testserver", "https://else.example"]),
    "foreign resource": lambda world: world.claims(resource="https://else.example/v1/mcp"),
    "one foreign resource": lambda world: world.claims(resource=[UNIFIED, "https://else.example/v1/mcp"]),
    "no usable resource": lambda world: world.claims(resource=[]),
    "foreign client": lambda world: world.claims(client_id="svc_another"),
    "no client": lambda world: world.claims(client_id=None),
    "foreign scope": lambda world: world.claims(scope="chat.read"),
    "unasked tenant": lambda world: world.claims(tenant="t-1"),
    "proof of possession": lambda world: world.claims(cnf={"jkt": "abc"}),
    "foreign issuer": lambda world: world.claims(iss="https://idp.else.example"),
    "no issuer": lambda world: world.claims(iss=None),
}


@pytest.mark.parametrize("case", CLAIMS)
def test_claims_that_are_refused(world: World, case: str) -> None:
    answer = world.present(world.provider.sign(CLAIMS[case](world)))
    assert refusal(answer) == INVALID_GRANT
    assert answer.json()["error_description"]
    assert not TokenFamily.objects.exists()
    assert not UsedAssertion.objects.exists()


def unsigned(world: World) -> str:
    return jwt.encode(world.claims(), None, algorithm="none", headers={"typ": "oauth-id-jag+jwt", "kid": "first"})


def signed_with_the_public_key(world: World) -> str:
    public = world.provider.keys["first"].public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    header = {"typ": "oauth-id-jag+jwt", "kid": "first", "alg": "HS256"}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, world.claims())]
    signature = jwt.get_algorithm_by_name("HS256").sign(b".".join(parts), pem)
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


def signed_by_another(world: World) -> str:
    return jwt.encode(
        world.claims(), new_key("ES256"), algorithm="ES256", headers={"typ": "oauth-id-jag+jwt", "kid": "first"}
    )


TEXTS: dict[str, Callable[[World], str]] = {
    "unsigned": unsigned,
    "HS256 with the public key": signed_with_the_public_key,
    "another key": signed_by_another,
    "an algorithm that the owner did not allow": lambda world: jwt.encode(
        world.claims(), new_key("PS256"), algorithm="PS256", headers={"typ": "oauth-id-jag+jwt", "kid": "first"}
    ),
    "unknown key": lambda world: world.provider.sign(world.claims(), kid="other"),
    "no key id": lambda world: world.provider.sign(world.claims(), kid=None),
    "an ID token": lambda world: world.provider.sign(world.claims(), typ="JWT"),
    "critical header": lambda world: world.provider.sign(world.claims(), crit=["exp"]),
    "oversized": lambda world: world.assertion(more="x" * 9_000),
    "no JWT": lambda world: "abc",
    "three dots": lambda world: "a.b.c",
}


@pytest.mark.parametrize("case", TEXTS)
def test_texts_that_are_refused(world: World, case: str) -> None:
    assert refusal(world.present(TEXTS[case](world))) == INVALID_GRANT


def test_an_assertion_is_used_once(world: World) -> None:
    assertion = world.assertion()
    # A refusal before the last step does not use it up.
    assert refusal(world.present(assertion, scope="mcp:nothing")) == (400, "invalid_scope")
    assert world.present(assertion).status_code == 200
    assert refusal(world.present(assertion)) == INVALID_GRANT
    # Nor does it count again once the issuer was removed and added.
    remove_issuer(actor=world.cast.user("owner"), organization=world.cast.org, issuer_id=world.trust.pk)
    add_issuer(actor=world.cast.user("owner"), organization=world.cast.org, wanted=Wanted(world.provider.url))
    assert refusal(world.present(assertion)) == INVALID_GRANT


def test_of_fifty_threads_one_gets_a_token(committed_cast: Cast, provider: AssertionProvider) -> None:
    world = World(committed_cast, provider)
    world.token()  # few may wait for the keys
    assertion = world.assertion()
    answers = at_once(*[lambda: world.present(assertion)] * 50)
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 49
    assert {refusal(answer) for answer in answers if answer.status_code == 400} == {INVALID_GRANT}
    assert UsedAssertion.objects.count() == 2


def test_used_assertions_are_kept_until_they_expire(world: World) -> None:
    world.token()
    remove_expired_rows(now=clock.now() + timedelta(minutes=4))
    assert UsedAssertion.objects.count() == 1
    remove_expired_rows(now=clock.now() + timedelta(minutes=6))
    assert not UsedAssertion.objects.exists()


@pytest.mark.parametrize(
    ("claim", "asked", "granted"),
    [
        (None, "", "mcp:all"),
        ("mcp:acme", "", "mcp:acme"),
        ("mcp:acme", "mcp:all", "mcp:acme"),
        ("mcp", "mcp:acme", "mcp:acme"),
    ],
)
def test_scopes_are_those_of_both(world: World, vendor: str, claim: str | None, asked: str, granted: str) -> None:
    answer = world.present(world.assertion(scope=claim), **({"scope": asked} if asked else {}))
    assert answer.json()["scope"] == granted


def test_a_scope_or_resource_outside_the_assertion(world: World, vendor: str) -> None:
    at_acme = world.assertion(scope="mcp:acme", resource="http://testserver/v1/acme/mcp")
    assert refusal(world.present(at_acme, resource=UNIFIED)) == (400, "invalid_target")
    assert refusal(world.present(at_acme, scope="mcp:other")) == (400, "invalid_scope")
    answer = world.present(at_acme)
    assert load_identity(answer.json()["access_token"]).audiences == ("http://testserver/v1/acme/mcp",)


def test_without_a_resource_the_token_is_for_the_unified_endpoint(world: World) -> None:
    assert load_identity(world.token(resource=None)).audiences == (UNIFIED,)


def test_clients_that_are_refused(world: World, public_client: Any) -> None:
    assertion = world.assertion()
    fields = {"grant_type": features.JWT_BEARER, "assertion": assertion}
    assert refusal(post({**fields, "client_id": "mcpc_public"})) == (400, "unauthorized_client")
    assert refusal(post(fields)) == (401, "invalid_client")
    wrong = {**fields, "client_id": world.service.client.client_id, "client_secret": "wrong"}
    assert refusal(post(wrong)) == (401, "invalid_client")
    assert refusal(post(world.service.fields(grant_type=features.JWT_BEARER))) == (400, "invalid_request")
    owner, org = world.cast.user("owner"), world.cast.org
    set_acting(actor=owner, organization=org, client=world.service.client, acts_for_people=False)
    assert refusal(world.present(assertion)) == (400, "unauthorized_client")


def test_another_organizations_issuer_is_no_issuer_here(world: World) -> None:
    cast = world.cast
    theirs = make_service(cast, organization=cast.other_org)
    other = cast.user("other_owner")
    set_acting(actor=other, organization=cast.other_org, client=theirs.client, acts_for_people=True)
    # Their agent, our issuer, our member.
    assertion = world.assertion(client_id=theirs.client.client_id)
    answer = post(theirs.fields(grant_type=features.JWT_BEARER, assertion=assertion))
    assert refusal(answer) == INVALID_GRANT
    # They trust it as well: it still vouches for no member of ours, who is none of theirs.
    add_issuer(actor=other, organization=cast.other_org, wanted=Wanted(world.provider.url))
    answer = post(theirs.fields(grant_type=features.JWT_BEARER, assertion=assertion))
    assert refusal(answer) == INVALID_GRANT
    assert world.present(world.assertion()).status_code == 200


def test_only_named_agents(cast: Cast, provider: AssertionProvider) -> None:
    other = make_service(cast, name="other bot")
    world = World(cast, provider, client_ids=[other.client.client_id])
    assert refusal(world.present(world.assertion())) == INVALID_GRANT
    allow(cast, other)
    assertion = world.assertion(client_id=other.client.client_id)
    assert post(other.fields(grant_type=features.JWT_BEARER, assertion=assertion)).status_code == 200


def test_a_tenant_of_an_issuer_with_several(cast: Cast, provider: AssertionProvider) -> None:
    world = World(cast, provider, tenant="t-1")
    assert refusal(world.present(world.assertion())) == INVALID_GRANT
    assert refusal(world.present(world.assertion(tenant="t-2"))) == INVALID_GRANT
    world.token(tenant="t-1")


def test_tokens_end_with_the_trust(world: World) -> None:
    token = world.token()
    load_identity(token)
    remove_issuer(actor=world.cast.user("owner"), organization=world.cast.org, issuer_id=world.trust.pk)
    with pytest.raises(InvalidBearer):
        load_identity(token)
    assert refusal(world.present(world.assertion())) == INVALID_GRANT
    row = AdminAuditEntry.objects.get(event_type="trusted_issuer.removed")
    assert row.metadata == {"issuer": world.provider.url, "people_with_tokens": 1}


def test_tokens_end_with_the_member(world: World) -> None:
    token, cast = world.token(), world.cast
    remove_member(actor=cast.user("owner"), organization=cast.org, user_id=cast.user("member").pk)
    with pytest.raises(InvalidBearer):
        load_identity(token)
    assert refusal(world.present(world.assertion())) == INVALID_GRANT
    assert not LinkedSubject.objects.exists()


def test_tokens_end_with_the_permission_and_with_the_agent(world: World) -> None:
    owner, org = world.cast.user("owner"), world.cast.org
    token = world.token()
    set_acting(actor=owner, organization=org, client=world.service.client, acts_for_people=False)
    set_acting(actor=owner, organization=org, client=world.service.client, acts_for_people=True)
    with pytest.raises(InvalidBearer):
        load_identity(token)
    again = world.token()
    assert post({"token": again, **world.service.fields()}, path="/oauth/revoke").status_code == 200
    with pytest.raises(InvalidBearer):
        load_identity(again)


def test_a_deactivated_person(world: World) -> None:
    world.cast.user("member").__class__.objects.filter(pk=world.cast.user("member").pk).update(is_active=False)
    assert refusal(world.present(world.assertion())) == INVALID_GRANT


def test_a_rotated_key_is_found_and_fetches_are_few(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = world.provider
    world.token()
    provider.asked.clear()
    world.token()
    assert provider.asked == []
    monkeypatch.setattr(issuer_keys, "REFETCH_S", 0.0)
    issuer_keys.forget()
    world.token()
    provider.rotate("second")
    try:
        world.token()
        monkeypatch.setattr(issuer_keys, "REFETCH_S", 30.0)
        issuer_keys.forget()
        provider.asked.clear()
        for _ in range(5):
            assert refusal(world.present(provider.sign(world.claims(), kid="unknown"))) == INVALID_GRANT
        assert provider.asked == ["/.well-known/openid-configuration", "/keys"]
    finally:
        provider.kid = "first"
        del provider.keys["second"]


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/keys", (500, b"{}")),
        ("/keys", (302, b"{}")),
        ("/keys", (200, b"no JSON")),
        ("/keys", (200, b'{"keys":[]}')),
        ("/keys", (200, b'{"keys":[' + b" " * 300_000 + b"]}")),
        ("/.well-known/openid-configuration", (200, b'{"issuer":"https://else.example","jwks_uri":"https://e/k"}')),
    ],
)
def test_an_issuer_that_does_not_answer_as_it_should(world: World, path: str, answer: tuple[int, bytes]) -> None:
    world.provider.answers[path] = answer
    assertion = world.assertion()
    assert refusal(world.present(assertion)) == (503, "temporarily_unavailable")
    world.provider.answers.clear()
    issuer_keys.forget()
    assert world.present(assertion).status_code == 200


def test_keys_at_a_private_address(world: World, settings: Settings) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    assert refusal(world.present(world.assertion())) == INVALID_GRANT
    assert world.provider.asked == ["/.well-known/openid-configuration", "/keys"]  # when the trust was set


@pytest.mark.parametrize("change", [{"d": "AQAB"}, {"use": "enc"}, {"kty": "oct", "k": "c2VjcmV0"}])
def test_keys_that_may_not_sign(world: World, change: dict[str, str]) -> None:
    jwk = {**public_jwk(world.provider.keys["first"], "first", "ES256"), **change}
    world.provider.answers["/keys"] = (200, json.dumps({"keys": [jwk]}).encode())
    answer = world.present(world.assertion())
    assert answer.status_code in {400, 503}
    assert not TokenFamily.objects.exists()


def test_the_metadata_announces_it(db: None) -> None:
    document = Browser().get("/.well-known/oauth-authorization-server").json()
    assert document["authorization_grant_profiles_supported"] == ["urn:ietf:params:oauth:grant-profile:id-jag"]
    assert features.JWT_BEARER in document["grant_types_supported"]


def test_no_text_repeats_the_assertion(world: World, caplog: pytest.LogCaptureFixture) -> None:
    assertion = world.assertion(scope="chat.read")
    answer = world.present(assertion)
    for part in assertion.split("."):
        assert part not in answer.content.decode()
        assert part not in caplog.text
    assert not TrustedIssuer.objects.filter(last_used_at__isnull=False).exists()

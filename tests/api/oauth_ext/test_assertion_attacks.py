"""Attacks on the exchange of identity assertions by an issuer, a tenant or a person. docs/decisions/0109"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from typing import Any

import jwt
import pytest
from django.conf import settings
from django.db import connection
from django.http import HttpResponse

from gateway.lib import clock
from oauth_ext import features, issuer_keys
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import AccessToken, LinkedSubject, TokenFamily, UsedAssertion
from oauth_ext.services import assertions
from oauth_ext.services.acting import set_acting
from oauth_ext.services.trusted_issuers import Wanted, add_issuer
from orgs.models import Identity, MailDomain, Membership
from orgs.roles import Role
from orgs.services.mail_domains import release_domain
from orgs.services.members import remove_member
from tests.api.oauth_ext import test_assertion_grant as assertion_grant
from tests.api.oauth_ext.conftest import make_service, post
from tests.api.oauth_ext.test_assertion_grant import INVALID_GRANT, World
from tests.api.oauth_ext.test_token import refusal
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.factories.races import at_once
from tests.fakes.assertion_provider import TYPE, AssertionProvider

no_known_keys = assertion_grant.no_known_keys
provider_of_module = assertion_grant.provider_of_module
provider = assertion_grant.provider
world = assertion_grant.world


def encoded(part: bytes) -> str:
    """As JWS writes it."""
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def signed(provider: AssertionProvider, payload: str, **header: Any) -> str:
    """A genuine signature over any text in the place of the claims."""
    head = {"typ": TYPE, "kid": provider.kid, "alg": provider.algorithm, **header}
    text = f"{encoded(json.dumps(head).encode())}.{payload}"
    algorithm = jwt.get_algorithm_by_name(provider.algorithm)
    return f"{text}.{encoded(algorithm.sign(text.encode(), provider.keys[provider.kid]))}"


def test_one_spelling_only(world: World) -> None:
    """The library reads base64 with padding, and beyond dots and line ends; the form of a JWS has none of them."""
    known = encoded(json.dumps(world.claims()).encode() + b" " * 6)
    for payload in (f"{known[:-4]}.{known[-4:]}", f"{known[:-4]}!{known[-4:]}", f"{known}===="):
        assert refusal(world.present(signed(world.provider, payload))) == INVALID_GRANT
    assert world.present(signed(world.provider, known)).status_code == 200


ODD_CLAIMS: dict[str, str] = {
    "a member twice": '"sub":"m-1","sub":"m-2"',
    "half of a surrogate pair in the subject": '"sub":"\\ud800"',
    "half of a surrogate pair in the issuer": '"iss":"https://\\ud800"',
    "half of a surrogate pair in the address": '"email":"member\\udfff@example.com"',
    "half of a surrogate pair in the id": '"jti":"\\ud800"',
    "NUL in the address": '"email":"mem\\u0000ber@example.com"',
    "NUL in the domain": '"email":"member@example.com\\u0000"',
    "NUL in the tenant": '"tenant":"\\u0000"',
    "NUL in the scope": '"scope":"mcp\\u0000"',
    "NUL in the resource": '"resource":"http://testserver/v1/mcp\\u0000"',
    "an end that is no number": '"exp":NaN',
    "an infinite end": '"exp":1e309',
    "an end with a fraction": '"exp":4102444800.5',
    "an end in words": '"exp":"4102444800"',
    "an end that is true": '"exp":true',
    "an end beyond all dates": f'"exp":{"9" * 60}',
    "a beginning in words": '"nbf":"0"',
    "a beginning that is nothing": '"nbf":null',
    "more digits than Python reads": f'"exp":{"9" * 5_000}',
    "a deep claim": f'"more":{"[" * 2_000}{"]" * 2_000}',
    "an address that is a list": '"email":["member@example.com"]',
    "an audience in a list of lists": '"aud":[["http://testserver"]]',
}


def test_odd_claims_are_refused_in_the_documented_shape(world: World) -> None:
    for case, text in ODD_CLAIMS.items():
        known = world.claims()
        name = text.partition(":")[0].strip('"')
        rest = {key: value for key, value in known.items() if key != name}
        payload = f"{json.dumps(rest)[:-1]},{text}}}"
        assert refusal(world.present(signed(world.provider, encoded(payload.encode())))) == INVALID_GRANT, case
    assert not UsedAssertion.objects.exists()
    assert not LinkedSubject.objects.exists()


def test_headers_that_name_another_key(world: World) -> None:
    """A key that the assertion brings, or points to, has no effect: only published ones count."""
    world.provider.asked.clear()
    for header in ({"jku": "http://127.0.0.1:1/keys"}, {"x5u": "http://127.0.0.1:1/c"}, {"jwk": {"kty": "oct"}}):
        assert (
            world.present(signed(world.provider, encoded(json.dumps(world.claims()).encode()), **header)).status_code
            == 200
        )
    assert set(world.provider.asked) <= {"/.well-known/openid-configuration", "/keys"}
    for header in ({"crit": []}, {"crit": ["b64"], "b64": False}, {"kid": ["first"]}, {"kid": "../first"}):
        text = signed(world.provider, encoded(json.dumps(world.claims()).encode()), **header)
        assert refusal(world.present(text)) == INVALID_GRANT, header


def test_letters_that_only_look_alike(world: World) -> None:
    for email in (
        "member@example.com".replace("e", "\u0435"),
        "MEMBER@EXAMPLE.COM".replace("M", "\uff2d"),
        "member@\u212aexample.com",
    ):
        assert refusal(world.present(world.assertion(email=email))) == INVALID_GRANT
    admin = world.cast.user("admin")
    admin.email = "mike@example.com"
    admin.save()
    # PostgreSQL's upper case of a dotless i is I.
    assert refusal(world.present(world.assertion(email="m\u0131ke@example.com"))) == INVALID_GRANT


def test_an_address_that_changed_hands(world: World) -> None:
    world.token()
    # A new employee has the address; the person of before is still a member.
    assert refusal(world.present(world.assertion(subject="m-2"))) == INVALID_GRANT
    assert LinkedSubject.objects.get().sub == "m-1"
    # The same for a person who signed in at the issuer as another subject.
    Identity.objects.create(user=world.cast.user("admin"), issuer=world.provider.url, sub="a-1")
    assert refusal(world.present(world.assertion(subject="a-2", email="admin@example.com"))) == INVALID_GRANT
    assert world.present(world.assertion()).status_code == 200


def test_what_the_domain_proved_ends_with_it(world: World) -> None:
    admin = world.cast.user("admin")
    Identity.objects.create(user=admin, issuer=world.provider.url, sub="a-1")
    by_sign_in, by_domain = world.token(subject="a-1", email=None), world.token()
    row = MailDomain.objects.get()
    release_domain(actor=world.cast.user("owner"), organization=world.cast.org, domain_id=row.pk)
    with pytest.raises(InvalidBearer):
        load_identity(by_domain)
    load_identity(by_sign_in)
    assert refusal(world.present(world.assertion())) == INVALID_GRANT
    world.token(subject="a-1", email=None)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="a file has one writer")
@pytest.mark.parametrize("end", ["removal", "release"])
def test_an_end_while_the_token_is_stored(
    committed_cast: Cast, provider: AssertionProvider, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    world, cast = World(committed_cast, provider), committed_cast
    storing, may_go_on, use_up = threading.Event(), threading.Event(), assertions.use_up

    def slow(*known: Any) -> None:
        storing.set()
        may_go_on.wait(0.5)  # the end waits meanwhile
        use_up(*known)

    def finish() -> None:
        assert storing.wait(20)
        owner = cast.user("owner")
        if end == "removal":
            remove_member(actor=owner, organization=cast.org, user_id=cast.user("member").pk)
        else:
            release_domain(actor=owner, organization=cast.org, domain_id=MailDomain.objects.get().pk)
        may_go_on.set()

    monkeypatch.setattr(assertions, "use_up", slow)
    answer, _ = at_once(lambda: world.present(world.assertion()), finish)
    assert isinstance(answer, HttpResponse)
    assert answer.status_code == 200
    assert not TokenFamily.objects.exists()
    assert not AccessToken.objects.exists()


def test_a_person_whom_the_provider_of_sign_ins_refused(world: World) -> None:
    Identity.objects.filter(user=world.cast.user("member")).update(refused_at=clock.now())
    assert refusal(world.present(world.assertion())) == INVALID_GRANT
    Identity.objects.update(refused_at=None)
    world.token()


def test_a_refusal_leaves_no_trace(world: World) -> None:
    """Also one after the assertion was used up: here the person is another subject's."""
    world.token()
    used = UsedAssertion.objects.count()
    LinkedSubject.objects.update(sub="other")
    assert refusal(world.present(world.assertion())) == INVALID_GRANT
    assert UsedAssertion.objects.count() == used
    assert LinkedSubject.objects.count() == 1


def test_two_organizations_of_one_person(world: World) -> None:
    """The other organization trusts an issuer with the same name and keys of its own, and knows the same person."""
    cast, member = world.cast, world.cast.user("member")
    Membership.objects.create(organization=cast.other_org, user=member, role=Role.OWNER.value)
    theirs, other = make_service(cast, organization=cast.other_org), cast.user("other_owner")
    set_acting(actor=other, organization=cast.other_org, client=theirs.client, acts_for_people=True)
    keys = f"{world.provider.url}/keys"
    add_issuer(actor=other, organization=cast.other_org, wanted=Wanted(world.provider.url, jwks_url=keys))

    def present(**claims: Any) -> HttpResponse:
        assertion = world.assertion(client_id=theirs.client.client_id, **claims)
        return post(theirs.fields(grant_type=features.JWT_BEARER, assertion=assertion))

    # The domain is the first organization's, and the keys are no proof of a sign-in at the issuer.
    assert refusal(present()) == INVALID_GRANT
    Identity.objects.create(user=member, issuer=world.provider.url, sub="m-1")
    assert refusal(present()) == INVALID_GRANT
    # A token reaches the organization whose trust it came by, and no other one of the person.
    identity = load_identity(world.token())
    assert (identity.user_id, identity.org_id) == (member.pk, cast.org.pk)
    assert set(TokenFamily.objects.values_list("organization_id", flat=True)) == {cast.org.pk}


def test_an_issuer_that_hangs_leaves_threads_to_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that would wait longer are told to try again, and other organizations still find their keys."""
    asked, may_answer = threading.Semaphore(0), threading.Event()

    def hang(url: str) -> list[dict[str, Any]]:
        asked.release()
        assert may_answer.wait(30)
        return []

    monkeypatch.setattr(issuer_keys, "published_keys", hang)
    own = [issuer_keys.IssuerKeys(world.cast.org.pk, "", f"https://{n}.example") for n in range(5)]
    threads = [threading.Thread(target=_find, args=(each,)) for each in own]
    for each in threads[: settings.ISSUER_KEY_WAITS_OF_ORGANIZATION]:
        each.start()
        assert asked.acquire(timeout=10)
    try:
        assert refusal(world.present(world.assertion())) == (503, "temporarily_unavailable")
        assert not asked.acquire(blocking=False)
        monkeypatch.setattr(issuer_keys, "published_keys", lambda url: [])
        with pytest.raises(issuer_keys.UnknownKey):
            issuer_keys.IssuerKeys(world.cast.other_org.pk, "", "https://else.example").find("first", "ES256")
    finally:
        may_answer.set()
        for each in threads[: settings.ISSUER_KEY_WAITS_OF_ORGANIZATION]:
            each.join(10)


def _find(known: issuer_keys.IssuerKeys) -> None:
    with contextlib.suppress(issuer_keys.UnknownKey, issuer_keys.KeysUnavailable):
        known.find("first", "ES256")

"""The provider's documents in a process: fetched once, waited for by as few as can be, odd answers refused."""

from __future__ import annotations

import threading
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.test import Client as Browser
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from gateway.coordination.rules import Rule
from gateway.lib import clock, guarded_client
from gateway.lib.guarded_client import Response
from gateway.lib.outbound import AddressRefused
from orgs.models import User
from orgs.services.identities import person_for_identity
from orgs.signin import provider
from orgs.signin.backend import IdentityBackend
from tests.factories.fixed_window import hold_window
from tests.factories.provider import forget_provider

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ISSUER = "https://idp.example"
DISCOVERY = f"{ISSUER}/.well-known/openid-configuration"
JWKS = f"{ISSUER}/jwks"


def document() -> dict[str, Any]:
    names = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint")
    return {"issuer": ISSUER, "jwks_uri": JWKS, **{name: f"{ISSUER}/{name}" for name in names}}


def key_set(kid: str = "one") -> dict[str, Any]:
    return {"keys": [{**RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": kid, "alg": "RS256"}]}


def signed(kid: str = "one") -> str:
    return jwt.encode({"sub": "ana"}, KEY, "RS256", headers={"kid": kid})


class FakeProvider:
    """Answers what it is told to; a fetch of a `held` address waits until it is let go."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {DISCOVERY: document(), JWKS: key_set()}
        self.asked: list[str] = []
        self.held: set[str] = set()
        self.arrived, self.let_go = threading.Event(), threading.Event()

    def fetch(self, url: str) -> dict[str, Any]:
        self.asked.append(url)
        if url in self.held:
            self.arrived.set()
            assert self.let_go.wait(30)
        answer = self.answers[url]
        if isinstance(answer, Exception):
            raise answer
        found: dict[str, Any] = answer
        return found


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> FakeProvider:
    settings.OIDC_OP_DISCOVERY_URL = DISCOVERY
    made = FakeProvider()
    monkeypatch.setattr(provider, "_get_json", made.fetch)
    monkeypatch.setattr(provider, "_Kept", type("_Fresh", (), dict(vars(provider._Kept)) | {"provider": None}))
    provider._Kept.discovery = threading.Lock()
    forget_provider()
    return made


def test_a_slow_provider_holds_nobody_up_who_knows_the_last_answer(fake: FakeProvider) -> None:
    first = provider.current()
    provider._Kept.provider_until = 0.0
    fake.held = {DISCOVERY}
    slow = threading.Thread(target=provider.current)
    slow.start()
    assert fake.arrived.wait(30)
    assert [provider.current() for _ in range(50)] == [first] * 50
    assert fake.asked.count(DISCOVERY) == 2
    fake.let_go.set()
    slow.join(30)


def test_an_unknown_key_holds_nobody_up_whose_key_is_known(fake: FakeProvider) -> None:
    known = provider.current()
    provider.signing_key(known, signed())
    fake.held = {JWKS}
    fake.answers[JWKS] = key_set("two")
    found: list[Any] = []
    waiting = [threading.Thread(target=lambda: found.append(provider.signing_key(known, signed("two")))) for _ in "abc"]
    for thread in waiting:
        thread.start()
    assert fake.arrived.wait(30)
    for _ in range(50):
        assert provider.signing_key(known, signed()).key_id == "one"
    fake.let_go.set()
    for thread in waiting:
        thread.join(30)
    assert [key.key_id for key in found] == ["two"] * 3
    assert fake.asked.count(JWKS) == 2


def test_a_withdrawn_key_is_believed_for_an_hour_at_most(fake: FakeProvider) -> None:
    known = provider.current()
    provider.signing_key(known, signed())
    kept = provider._keys(known.jwks_uri).jwk_set_cache
    assert kept is not None
    assert kept.jwk_set_with_timestamp is not None
    kept.jwk_set_with_timestamp.timestamp -= provider.KEEP_S
    fake.answers[JWKS] = key_set("two")
    with pytest.raises(jwt.PyJWTError):
        provider.signing_key(known, signed())


def test_unknown_keys_cause_one_fetch_in_a_while(fake: FakeProvider) -> None:
    known = provider.current()
    provider.signing_key(known, signed())
    for number in range(5):
        with pytest.raises(jwt.PyJWTError):
            provider.signing_key(known, signed(f"unknown {number}"))
    assert fake.asked.count(JWKS) == 2
    assert provider.signing_key(known, signed()).key_id == "one"


@pytest.mark.parametrize("known_before", [False, True])
def test_a_set_without_a_usable_key_causes_one_fetch_in_a_while(fake: FakeProvider, known_before: bool) -> None:
    known = provider.current()
    if known_before:
        provider.signing_key(known, signed())
    fake.asked.clear()
    fake.answers[JWKS] = {"keys": []}
    for number in range(5):
        with pytest.raises(jwt.PyJWTError):
            provider.signing_key(known, signed(f"unknown {number}"))
    assert fake.asked.count(JWKS) == 1
    if known_before:
        assert provider.signing_key(known, signed()).key_id == "one"
    fake.answers[JWKS] = key_set("two")
    provider._keys(known.jwks_uri)._may_fetch_at = 0.0
    assert provider.signing_key(known, signed("two")).key_id == "two"


def test_another_key_set_begins_anew(fake: FakeProvider) -> None:
    provider.signing_key(provider.current(), signed())
    moved = f"{ISSUER}/moved"
    fake.answers |= {DISCOVERY: {**document(), "jwks_uri": moved}, moved: key_set("two")}
    provider._Kept.provider_until = 0.0
    known = provider.current()
    assert provider.signing_key(known, signed("two")).key_id == "two"
    with pytest.raises(jwt.PyJWTError):
        provider.signing_key(known, signed())


def without_kid() -> str:
    return jwt.encode({"sub": "ana"}, KEY, "RS256")


@pytest.mark.parametrize("named", [True, False])
def test_a_token_without_a_kid_needs_the_only_key(fake: FakeProvider, named: bool) -> None:
    (key,) = key_set()["keys"]
    if not named:
        del key["kid"], key["alg"]
    encrypting, other = {**key, "kid": "two", "use": "enc"}, {**key, "kid": "three", "alg": "RS512"}
    fake.answers[JWKS] = {"keys": [encrypting, other, key]}
    known = provider.current()
    found = provider.signing_key(known, without_kid())
    assert jwt.decode(without_kid(), found, algorithms=["RS256"])["sub"] == "ana"
    for kid in ("two", "three"):
        with pytest.raises(jwt.PyJWTError):
            provider.signing_key(known, signed(kid))
    forget_provider()
    fake.answers[JWKS] = {"keys": [key, {**key, "kid": "four"}]}
    with pytest.raises(jwt.PyJWTError):
        provider.signing_key(known, without_kid())


def test_while_the_provider_is_away_its_last_confirmation_counts(fake: FakeProvider) -> None:
    first = provider.current()
    provider._Kept.provider_until = 0.0
    fake.answers[DISCOVERY] = provider.ProviderUnavailable("away")
    assert [provider.current() for _ in range(5)] == [first] * 5
    assert fake.asked.count(DISCOVERY) == 2, "and it is asked once in a while only"


@pytest.mark.parametrize(
    "keys",
    [
        {"keys": [{"kty": "RSA", "kid": "one", "alg": "RS256"}]},
        {"keys": [{"kty": "nonsense", "kid": "one"}]},
        {"keys": ["text", None, 7]},
        {"keys": "text"},
        {"keys": [{**ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key(), True), "kid": "one"}]},
        {},
    ],
    ids=["no numbers", "no type", "no objects", "no list", "another type", "nothing"],
)
def test_an_odd_key_set_is_a_refused_sign_in(
    fake: FakeProvider, monkeypatch: pytest.MonkeyPatch, rf: Any, keys: dict[str, Any]
) -> None:
    fake.answers[JWKS] = keys
    monkeypatch.setattr(IdentityBackend, "get_token", lambda self, payload: {"id_token": signed(), "access_token": "a"})
    request = rf.get("/oidc/callback/?code=c&state=s")
    assert IdentityBackend().authenticate(request, nonce="n") is None


def refuse(kind: type[Exception]) -> Any:
    def send(*request: str, **more: Any) -> Response:
        raise kind

    return send


@pytest.mark.parametrize(
    ("send", "is_away"),
    [
        (lambda *_, **__: Response(400, {}, b'{"error": "invalid_grant"}'), False),
        (lambda *_, **__: Response(302, {"Location": "http://10.0.0.1/"}, b"{}"), False),
        (lambda *_, **__: Response(200, {}, b"[]"), False),
        (lambda *_, **__: Response(200, {}, b"<html>"), False),
        (lambda *_, **__: Response(503, {}, b""), True),
        (refuse(guarded_client.OutboundTimeout), True),
        (refuse(guarded_client.ResponseTooLarge), True),
        (refuse(AddressRefused), True),
    ],
    ids=["refusal", "redirect", "no object", "no JSON", "error", "timeout", "too large", "metadata address"],
)
def test_an_answer_without_tokens_signs_nobody_in(
    fake: FakeProvider, monkeypatch: pytest.MonkeyPatch, rf: Any, send: Any, is_away: bool
) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(guarded_client, "send", lambda *request, **more: asked.append(request) or send(*request))
    request = rf.get("/oidc/callback/?code=c&state=s")
    assert IdentityBackend().authenticate(request, nonce="n") is None
    assert getattr(request, "provider_is_away", False) is is_away
    assert asked == [("POST", f"{ISSUER}/token_endpoint")]


@pytest.mark.parametrize(
    ("word", "all_are", "expected"),
    [
        (True, False, True),
        ("true", False, True),
        (False, True, False),
        ("false", True, False),
        ("True", False, False),
        (1, False, False),
        (None, False, False),
        (None, True, True),
    ],
)
def test_who_vouches_for_an_address(
    db: None, settings: LazySettings, word: object, all_are: bool, expected: bool
) -> None:
    settings.OIDC_EMAILS_ARE_VERIFIED = all_are
    claims = {"email": "ana@example.com", **({} if word is None else {"email_verified": word})}
    assert person_for_identity(issuer=ISSUER, sub="ana", claims=claims).email_verified is expected


def test_a_visit_leaves_a_row_for_half_an_hour(db: None, fake: FakeProvider) -> None:
    browser = Browser()
    browser.get("/oidc/authenticate/")
    left = Session.objects.get().expire_date - clock.now()
    assert 29 * 60 < left.total_seconds() <= 30 * 60


def test_a_signed_in_person_s_row_lives_on(db: None, fake: FakeProvider) -> None:
    browser = Browser()
    browser.force_login(
        User.objects.create_user(email="ana@example.com"), backend="orgs.signin.backend.IdentityBackend"
    )
    browser.get("/oidc/authenticate/")
    left = Session.objects.get().expire_date - clock.now()
    assert left.total_seconds() > 11 * 3600


def test_an_address_begins_so_many_sign_ins_only(
    db: None, fake: FakeProvider, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_window(monkeypatch)
    settings.SIGN_IN_STARTS = Rule(f"sign-in-starts {clock.now().timestamp()}", limit=3, window_s=60)
    statuses = [Browser().get("/oidc/authenticate/").status_code for _ in range(5)]
    assert statuses == [302, 302, 302, 429, 429]
    assert Session.objects.count() == 3

"""Signing in against a real provider in a process of its own: the walk, and every way to bend it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.test import Client as Browser

from audit.actor import system
from gateway.lib import guarded_client
from oauth_ext.services.deactivation import deactivate_person
from orgs.models import Identity, User
from orgs.services import identities
from orgs.services.identities import person_for_identity
from orgs.services.identity_sealing import refresh_token_of, seal_refresh_token
from orgs.signin import backend, provider
from tests.factories.cast import ISSUER, Cast
from tests.factories.provider import forget_provider
from tests.factories.races import at_once
from tests.vendors.processes import PLAIN_HTTP
from tests.vendors.servers import DemoIdentityProvider

pytest_plugins = ("tests.vendors.fixtures",)
AGAIN = "/signin?failed={}&next=%2Fprofile"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def start(browser: Browser, target: str = "/profile") -> str:
    """The provider's address that the browser is sent to."""
    answer = browser.get("/oidc/authenticate/", {"next": target})
    assert answer.status_code == 302
    return str(answer["Location"])


def log_in(address: str, email: str, **form: str) -> str:
    """The callback that the provider sends the browser back to."""
    answer = httpx.post(address, data={"sub": email, **form}, **PLAIN_HTTP)
    assert answer.status_code == 302
    return answer.headers["Location"].removeprefix("http://testserver")


def test_the_walk_makes_a_person_and_goes_where_it_was_asked_to(db: None, idp: DemoIdentityProvider) -> None:
    browser = Browser()
    address = start(browser)
    asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    assert asked["code_challenge_method"] == "S256"
    assert {"state", "nonce", "code_challenge"} <= set(asked)
    answer = browser.get(log_in(address, "Ana@Example.com", name="Ana"))
    assert (answer.status_code, answer["Location"]) == (302, "/profile")
    assert browser.get("/profile").status_code == 200
    identity = Identity.objects.get(issuer=idp.issuer, sub="ana@example.com")
    assert (identity.user.name, identity.user.email) == ("Ana", "ana@example.com")


def test_a_session_ends_with_its_person(db: None) -> None:
    person, browser = User.objects.create_user(email="ana@example.com"), Browser()
    browser.force_login(person)
    assert browser.get("/profile").status_code == 200
    User.objects.filter(pk=person.pk).update(is_active=False)
    assert browser.get("/profile")["Location"].startswith("/signin")


def test_a_deactivated_person_gets_a_message_at_sign_in(db: None, idp: DemoIdentityProvider) -> None:
    browser = Browser()
    browser.get(log_in(start(browser), "bo@example.com"))
    User.objects.update(is_active=False)
    answer = browser.get(log_in(start(browser), "bo@example.com"))
    assert answer["Location"] == "/signin?failed=deactivated"
    assert "Your account is deactivated" in browser.get(answer["Location"]).content.decode()
    assert browser.get("/profile").status_code == 302
    assert browser.get("/api/profile").status_code == 401
    User.objects.update(is_active=True)
    assert browser.get(log_in(start(browser), "bo@example.com"))["Location"] == "/profile"


def test_a_second_sign_in_is_the_same_person(db: None, idp: DemoIdentityProvider) -> None:
    for _ in range(2):
        browser = Browser()
        browser.get(log_in(start(browser), "bo@example.com"))
    assert User.objects.filter(email="bo@example.com").count() == 1


def test_the_session_changes_its_key(db: None, idp: DemoIdentityProvider) -> None:
    browser = Browser()
    address = start(browser)
    before = browser.session.session_key
    browser.get(log_in(address, "ana@example.com"))
    assert browser.session.session_key != before
    assert browser.session.get_expiry_age() > 11 * 3600, "the half hour of the sign-in is over"


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/x", "javascript:alert(1)"])
def test_next_never_leaves_the_site(db: None, idp: DemoIdentityProvider, target: str) -> None:
    browser = Browser()
    answer = browser.get(log_in(start(browser, target), "ana@example.com"))
    assert answer["Location"] == "/"
    page = browser.get("/signin", {"next": target})
    assert page["Location"] == "/"


def test_a_callback_in_another_browser_is_refused(db: None, idp: DemoIdentityProvider) -> None:
    callback = log_in(start(Browser()), "ana@example.com")
    waiting = Browser()
    start(waiting)
    for other in (waiting, Browser()):
        assert other.get(callback).status_code == 400
        assert other.get("/profile").status_code == 302  # signed in as nobody
    assert not Identity.objects.exists()


@pytest.mark.parametrize("query", ["", "?code=x", "?code=x&state=", "?state=x"])
def test_a_callback_without_a_state_is_refused(db: None, idp: DemoIdentityProvider, query: str) -> None:
    browser = Browser()
    start(browser)
    for each in (browser, Browser()):
        assert each.get(f"/oidc/callback/{query}").status_code == 400
        assert each.get("/profile").status_code == 302
    assert not Identity.objects.exists()


def test_a_callback_works_once(db: None, idp: DemoIdentityProvider) -> None:
    browser = Browser()
    callback = log_in(start(browser), "ana@example.com")
    assert browser.get(callback).status_code == 302
    assert browser.get(callback).status_code == 400


def test_a_forged_state_or_code_signs_nobody_in(db: None, idp: DemoIdentityProvider) -> None:
    browser = Browser()
    callback = log_in(start(browser), "ana@example.com")
    state = parse_qs(urlsplit(callback).query)["state"][0]
    assert browser.get("/oidc/callback/", {"code": "x", "state": "forged"}).status_code == 400
    assert browser.get("/oidc/callback/", {"code": "forged", "state": state})["Location"] == AGAIN.format("1")
    assert not Identity.objects.exists()


def test_saying_no_is_said_back(db: None, idp: DemoIdentityProvider) -> None:
    browser = Browser()
    answer = browser.get(log_in(start(browser), "", action="deny"))
    assert answer["Location"] == AGAIN.format("denied")
    assert "Sign-in was canceled" in browser.get("/signin?failed=denied").content.decode()


def test_a_provider_that_is_away_is_said_without_a_loop(db: None, settings: Any) -> None:
    settings.OIDC_OP_DISCOVERY_URL = "http://127.0.0.1:9/.well-known/openid-configuration"
    forget_provider()
    answer = Browser().get("/oidc/authenticate/")
    assert answer["Location"] == "/signin?failed=unreachable"
    assert Browser().get(answer["Location"]).status_code == 200


def test_a_link_to_the_callback_signs_nobody_out(cast: Cast) -> None:
    browser = cast.client("member")
    for query in ({"error": "access_denied"}, {"error": "x", "state": "forged"}):
        assert browser.get("/oidc/callback/", query)["Location"].startswith("/signin?failed=")
        assert browser.get("/profile").status_code == 200


def test_another_form_makes_us_ask_the_provider_nothing(
    db: None, idp: DemoIdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(guarded_client, "send", lambda method, url, **more: asked.append(url))
    form = {"username": "ana@example.com", "password": "x"}
    answer = Browser().post("/admin/login/?code=stolen&state=x", form)
    assert answer.status_code == 405
    assert asked == []


AUTHORIZE = "/oauth/authorize?client_id=mcpc_x&state=a%26b"


def start_of(page: Any) -> str:
    """Where the page's one button leads."""
    found: str = page.context["start_url"]
    return found


def test_an_app_that_waits_is_reached_when_the_provider_is_back(
    db: None, idp: DemoIdentityProvider, settings: Any
) -> None:
    settings.OIDC_OP_DISCOVERY_URL = "http://127.0.0.1:9/.well-known/openid-configuration"
    forget_provider()
    browser = Browser()
    page = browser.get("/signin", {"next": AUTHORIZE})
    for _ in range(2):  # each press of the button leads back to a page that does nothing by itself
        answer = browser.get(start_of(page))
        assert answer["Location"].startswith("/signin?failed=unreachable&next=")
        page = browser.get(answer["Location"])
        assert page.status_code == 200
        assert "can’t reach the identity provider right now" in page.content.decode()
        assert "http-equiv" not in page.content.decode()
    settings.OIDC_OP_DISCOVERY_URL = idp.discovery_url
    forget_provider()
    callback = log_in(browser.get(start_of(page))["Location"], "ana@example.com")
    assert browser.get(callback)["Location"] == AUTHORIZE


def test_a_sign_in_that_failed_still_knows_where_to(db: None, idp: DemoIdentityProvider) -> None:
    browser = Browser()
    state = parse_qs(urlsplit(start(browser, AUTHORIZE)).query)["state"][0]
    failed = browser.get("/oidc/callback/", {"code": "forged", "state": state})["Location"]
    assert start_of(browser.get(failed)).endswith(urlencode({"next": AUTHORIZE}))
    outside = browser.get("/signin", {"failed": "1", "next": "https://evil.example/"})
    assert "evil" not in outside.content.decode()


def test_a_provider_that_is_away_is_not_asked_by_everybody(
    db: None, idp: DemoIdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def away(method: str, url: str, **more: Any) -> None:
        asked.append(url)
        raise guarded_client.OutboundTimeout

    with monkeypatch.context() as patch:
        patch.setattr(guarded_client, "send", away)
        for _ in range(3):
            with pytest.raises(provider.ProviderUnavailable):
                provider.current()
    assert len(asked) == 1
    monkeypatch.setattr(provider, "AWAY_S", 0.0)
    provider._Kept.away_until = 0.0
    assert provider.current().issuer == idp.issuer


def test_a_provider_that_speaks_for_another_issuer_is_not_believed(
    db: None, idp: DemoIdentityProvider, settings: Any
) -> None:
    settings.OIDC_OP_DISCOVERY_URL = idp.discovery_url.replace("127.0.0.1", "localhost")
    forget_provider()
    with pytest.raises(provider.ProviderUnavailable, match="another issuer"):
        provider.current()


@pytest.fixture
def token(idp: DemoIdentityProvider, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Good claims, and a key of ours in place of the provider's."""
    monkeypatch.setattr(provider, "signing_key", lambda known, text: KEY.public_key())
    now = 1_900_000_000
    return {
        "iss": idp.issuer,
        "sub": "ana",
        "aud": idp.client_id,
        "iat": now - 10**9,
        "exp": now + 10**9,
        "nonce": "n-1",
    }


def verify(claims: dict[str, Any], *, nonce: str | None = "n-1", algorithm: str = "RS256") -> dict[str, Any]:
    key: Any = KEY if algorithm == "RS256" else "x" * 32
    return backend.IdentityBackend().verify_token(jwt.encode(claims, key, algorithm), nonce=nonce)


def test_a_good_id_token_is_taken(token: dict[str, Any]) -> None:
    assert verify(token)["sub"] == "ana"


@pytest.mark.parametrize(
    "change",
    [
        {"aud": "another-client"},
        {"iss": "https://other.example"},
        {"exp": 1},
        {"nonce": "other"},
        {"nonce": None},
        {"azp": "another-client"},
        {"sub": None},
        {"aud": ["x"]},
    ],
    ids=str,
)
def test_a_bent_id_token_is_refused(token: dict[str, Any], change: dict[str, Any]) -> None:
    bent = {name: value for name, value in {**token, **change}.items() if value is not None}
    with pytest.raises(Exception, match=r".") as refused:
        verify(bent)
    assert isinstance(refused.value, jwt.InvalidTokenError | backend.SuspiciousOperation)


def test_a_session_without_a_nonce_takes_no_token(token: dict[str, Any]) -> None:
    with pytest.raises(backend.SuspiciousOperation):
        verify(token, nonce=None)


def test_a_shared_secret_signs_nothing(token: dict[str, Any]) -> None:
    with pytest.raises(jwt.InvalidAlgorithmError):
        verify(token, algorithm="HS256")


def person(sub: str, **claims: Any) -> User:
    return person_for_identity(issuer="https://idp.example", sub=sub, claims={"sub": sub, **claims})


@pytest.mark.parametrize("address", ["admin@m\u0131crosoft.example", "a\u017fmin@microsoft.example"])
def test_a_look_alike_address_links_nobody(db: None, address: str) -> None:
    """PostgreSQL folds the dotless i to I and the long s to S."""
    prepared = User.objects.create_user(email="admin@microsoft.example")
    other = User.objects.create_user(email="asmin@microsoft.example")
    found = person("thief", email=address, email_verified=True)
    assert found not in {prepared, other}
    again = User.objects.create_user(email=address)
    assert person("thief-2", email=address, email_verified=True) != again, "nothing beyond ASCII links"
    assert person("admin", email="Admin@Microsoft.example", email_verified=True) == prepared


def test_an_address_links_only_when_it_is_verified_and_free(cast: Cast) -> None:
    made_by_an_operator = User.objects.create_user(email="new@example.com")
    assert person("x-1", email="new@example.com", email_verified=False) != made_by_an_operator
    assert person("x-2", email="new@example.com", email_verified="yes") != made_by_an_operator
    assert person("x-3", email="NEW@example.com", email_verified=True) == made_by_an_operator
    # The owner has an identity already: another subject with the same address is another person.
    assert person("x-4", email="owner@example.com", email_verified=True) != cast.user("owner")


def test_the_address_is_the_one_that_the_provider_vouches_for(cast: Cast) -> None:
    claimed = person("x-6", email="member@example.com", email_verified=False)
    assert (claimed.email, claimed.email_verified) == ("member@example.com", False)
    assert not claimed.owns_email("member@example.com")
    vouched = person("x-6", email="Member@Example.com", email_verified=True)
    assert vouched == claimed
    assert vouched.owns_email("member@example.com")
    for word in ({"email": "other@example.com", "email_verified": False}, {"email": "other@example.com"}, {}):
        assert person("x-6", email="member@example.com", email_verified=True).owns_email("member@example.com")
        silent = person("x-6", **word)  # the provider does not repeat its word: the address stays, and counts no more
        assert (silent.email, silent.email_verified) == ("member@example.com", False)
    moved = person("x-6", email="moved@example.com", email_verified=True)
    assert (moved.owns_email("moved@example.com"), moved.owns_email("member@example.com")) == (True, False)
    assert not person("x-6", email="moved@example.com").owns_email("moved@example.com")
    assert cast.user("member").owns_email("member@example.com")


def test_of_two_identities_at_once_one_gets_the_prepared_person(transactional_db: None) -> None:
    User.objects.create_user(email="new@example.com")
    found = at_once(*[partial(person, sub, email="new@example.com", email_verified=True) for sub in ("y-0", "y-1")])
    assert len({each.pk for each in found if isinstance(each, User)}) == 2
    assert Identity.objects.count() == 2


def signing_in_while(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object], refresh_token: str) -> Identity:
    """The identity of a person for whom something happens between reading and writing its row."""
    note_email = identities._note_email

    def interrupted(user: User, claims: Mapping[str, Any]) -> None:
        note_email(user, claims)
        happens()

    monkeypatch.setattr(identities, "_note_email", interrupted)
    person_for_identity(issuer=ISSUER, sub="member", claims={"sub": "member"}, refresh_token=refresh_token)
    return Identity.objects.get(sub="member")


def test_no_token_is_left_with_somebody_who_is_deactivated_meanwhile(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deactivate() -> None:
        deactivate_person(actor=system("test"), user_id=cast.user("member").pk)

    assert refresh_token_of(signing_in_while(monkeypatch, lambda: None, "first")) == "first"
    monkeypatch.undo()
    identity = signing_in_while(monkeypatch, deactivate, "second")
    assert (bytes(identity.refresh_sealed), identity.refresh_key_id) == (b"", "")


def test_a_sign_in_without_a_token_puts_no_earlier_one_back(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def renew() -> None:
        row = Identity.objects.get(sub="member")
        key_id, sealed = seal_refresh_token("renewed", row.pk)
        Identity.objects.filter(pk=row.pk).update(refresh_key_id=key_id, refresh_sealed=sealed)

    person_for_identity(issuer=ISSUER, sub="member", claims={"sub": "member"}, refresh_token="used up by now")
    assert refresh_token_of(signing_in_while(monkeypatch, renew, "")) == "renewed"


def test_names_that_break_our_rules_are_left_out(db: None) -> None:
    user = person("x-5", email="a@example.com", given_name="A\u202eB", family_name="Ok")
    assert (user.first_name, user.last_name) == ("", "Ok")

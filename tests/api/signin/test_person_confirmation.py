"""A person who is removed at the identity provider loses pages within 15 minutes and tokens at the next refresh; people
who stay notice nothing. Against the demo provider in a process of its own, with our clock moved on.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from django.conf import LazySettings
from django.db import connections
from django.test import Client as Browser

from audit.models import AdminAuditEntry
from gateway.keys.resealing import reseal
from gateway.lib import clock, guarded_client
from gateway.lib.guarded_client import Response
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import TokenFamily
from orgs.models import Identity, Membership, Organization, User
from orgs.roles import Role
from orgs.services.identity_sealing import REFRESH_TOKENS, refresh_token_of
from orgs.signin import confirmation, provider
from orgs.signin.confirmation import ConfirmationStatus
from orgs.signin.provider import Provider
from tests.api.oauth_ext.flow import Flow, make_public_client
from tests.factories.bearers import load_identity
from tests.factories.provider import forget_provider
from tests.vendors.processes import PLAIN_HTTP
from tests.vendors.servers import DemoIdentityProvider

pytest_plugins = ("tests.vendors.fixtures",)
ANA, BO = "ana@provider.example", "bo@provider.example"
HTML = "text/html"


@pytest.fixture
def idp(idp: DemoIdentityProvider, db: None) -> Iterator[DemoIdentityProvider]:
    """The provider, with everybody restored at the end."""
    yield idp
    for email in (ANA, BO):
        change(idp, email, "restore")


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves our clock on by so many minutes."""
    real, moved = clock.now, [timedelta()]
    monkeypatch.setattr(clock, "now", lambda: real() + moved[0])

    def move(minutes: float) -> None:
        moved[0] += timedelta(minutes=minutes)

    return move


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The people whom the provider was asked about, by the tokens that were sent to it."""
    sent: list[str] = []
    send = guarded_client.send

    def noted(*request: str, form: dict[str, str] | None, **more: Any) -> Response:
        if form and form["grant_type"] == "refresh_token":
            sent.append(form["refresh_token"])
        return send(*request, form=form, **more)

    monkeypatch.setattr(guarded_client, "send", noted)
    return sent


def change(idp: DemoIdentityProvider, email: str, action: str) -> None:
    answer = httpx.post(f"{idp.issuer}/people", data={"sub": email, "action": action}, **PLAIN_HTTP)
    assert answer.status_code == 200


def sign_in(email: str) -> tuple[Browser, httpx.Cookies]:
    """A browser in which the person is signed in here, and its cookies at the provider."""
    browser = Browser()
    address = browser.get("/oidc/authenticate/", {"next": "/profile"})["Location"]
    answer = httpx.post(address, data={"sub": email}, **PLAIN_HTTP)
    assert browser.get(answer.headers["Location"].removeprefix("http://testserver")).status_code == 302
    return browser, answer.cookies


def follow(browser: Browser, there: httpx.Cookies, answer: Any) -> Any:
    """The answer to a browser that follows a redirect to the provider and back."""
    back = httpx.get(answer["Location"], cookies=there, **PLAIN_HTTP).headers["Location"]
    return browser.get(back.removeprefix("http://testserver"))


def person(email: str) -> User:
    return User.objects.get(email=email)


def join(email: str) -> Organization:
    organization = Organization.objects.create(name=f"Of {email}")
    Membership.objects.create(organization=organization, user=person(email), role=Role.OWNER.value)
    return organization


def tokens(browser: Browser) -> tuple[Flow, dict[str, Any]]:
    flow = Flow(make_public_client(), browser)
    return flow, flow.tokens()


def test_a_removed_person_loses_pages_within_a_quarter_of_an_hour(
    idp: DemoIdentityProvider, later: Callable[[float], None]
) -> None:
    (ana, _), (bo, _) = sign_in(ANA), sign_in(BO)
    change(idp, ANA, "remove")
    later(15)
    assert ana.get("/profile")["Location"].startswith("/signin?next=")
    assert ana.get("/api/profile").status_code == 401
    assert bo.get("/profile").status_code == 200
    assert bo.get("/api/profile").status_code == 200
    address = ana.get("/oidc/authenticate/")["Location"]
    assert "was removed" in httpx.post(address, data={"sub": ANA}, **PLAIN_HTTP).text


def test_a_removed_person_loses_the_api_and_forms_too(
    idp: DemoIdentityProvider, later: Callable[[float], None]
) -> None:
    ana, _ = sign_in(ANA)
    organization = join(ANA)
    change(idp, ANA, "remove")
    later(15)
    answer = ana.patch("/api/profile", json.dumps({"displayName": "Eve"}), content_type="application/json")
    assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")
    assert ana.post(f"/orgs/{organization.pk}/settings", {"name": "Evil"}).status_code == 302
    organization.refresh_from_db()
    assert organization.name == f"Of {ANA}"
    assert person(ANA).display_name != "Eve"


@pytest.mark.parametrize(
    "path", ["/status.json", "/status.atom", "/api/schema", "/.well-known/oauth-authorization-server"]
)
def test_documents_that_caches_share_ask_about_nobody_and_set_no_cookie(
    idp: DemoIdentityProvider, later: Callable[[float], None], asked: list[str], path: str
) -> None:
    ana, _ = sign_in(ANA)
    later(15)
    answer = ana.get(path)
    assert (answer.status_code, answer["Cache-Control"].partition(",")[0]) == (200, "public")
    assert not answer.cookies
    assert asked == []
    assert ana.get("/profile").status_code == 200
    assert len(asked) == 1


def test_who_stays_loses_nothing_and_is_asked_about_rarely(
    idp: DemoIdentityProvider, later: Callable[[float], None], asked: list[str]
) -> None:
    ana, _ = sign_in(ANA)
    for _ in range(5):
        assert ana.get("/profile").status_code == 200
    assert asked == []
    later(15)
    answer = ana.patch("/api/profile", json.dumps({"displayName": "Ana"}), content_type="application/json")
    assert answer.status_code == 200
    for _ in range(5):
        assert ana.get("/profile").status_code == 200
    assert len(asked) == 1
    for _ in range(10):
        later(15)
        assert ana.get("/profile").status_code == 200
    assert len(asked) == 11


def test_a_removed_person_loses_tokens_at_the_next_refresh(
    idp: DemoIdentityProvider, later: Callable[[float], None]
) -> None:
    flows = {}
    for email in (ANA, BO):
        browser, _ = sign_in(email)
        join(email)
        flows[email] = tokens(browser)
    change(idp, ANA, "remove")
    later(15)
    flow, given = flows[ANA]
    answer = flow.refresh(given["refresh_token"])
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert not TokenFamily.objects.filter(user=person(ANA)).exists()
    with pytest.raises(InvalidBearer):
        load_identity(given["access_token"])
    row = AdminAuditEntry.objects.get(event_type="oauth.person_refused")
    assert row.org_id == Organization.objects.get(name=f"Of {ANA}").pk
    flow, given = flows[BO]
    assert flow.refresh(given["refresh_token"]).status_code == 200
    assert load_identity(given["access_token"]).user_id == person(BO).pk


def test_who_stays_refreshes_for_weeks(
    idp: DemoIdentityProvider, later: Callable[[float], None], asked: list[str]
) -> None:
    browser, _ = sign_in(ANA)
    join(ANA)
    flow, given = tokens(browser)
    for round_ in range(8):
        later(3 * 24 * 60)
        answer = flow.refresh(given["refresh_token"])
        assert answer.status_code == 200, answer.content
        given = answer.json()
        assert len(asked) == round_ + 1


def test_somebody_let_in_again_signs_in_and_old_tokens_stay_dead(
    idp: DemoIdentityProvider, later: Callable[[float], None]
) -> None:
    browser, _ = sign_in(ANA)
    join(ANA)
    flow, given = tokens(browser)
    change(idp, ANA, "remove")
    later(15)
    assert flow.refresh(given["refresh_token"]).status_code == 400
    change(idp, ANA, "restore")
    assert flow.refresh(given["refresh_token"]).status_code == 400
    assert browser.get("/profile").status_code == 302
    again, _ = sign_in(ANA)
    assert again.get("/profile").status_code == 200
    assert tokens(again)[1]["access_token"]


@pytest.fixture
def away(settings: LazySettings) -> Callable[[], None]:
    """The provider's token endpoint cannot be reached from now on."""

    def go() -> None:
        known = provider.current()
        gone = type(known)(
            **{name: getattr(known, name) for name in type(known).__slots__ if name != "token_endpoint"},
            token_endpoint="http://127.0.0.1:9/token",
        )
        provider._Kept.provider = gone

    return go


Meanwhile = list[Callable[[], object]]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> tuple[list[float], Meanwhile]:
    """The pauses of requests that wait for the word that another one asks for, in seconds; and what happens in them."""
    taken: list[float] = []
    meanwhile: Meanwhile = []

    def pause(seconds: float) -> None:
        taken.append(seconds)
        if meanwhile:
            meanwhile.pop(0)()

    monkeypatch.setattr(confirmation, "confirm_person", partial(confirmation.confirm_person, pause=pause))
    return taken, meanwhile


def nothing() -> None:
    """In a pause."""


def ask_elsewhere(email: str) -> None:
    """Another process begins to ask about the person."""
    Identity.objects.filter(user=person(email)).update(asked_at=clock.now())


def hear_elsewhere(email: str, answer: ConfirmationStatus) -> None:
    """The other process has its answer."""
    column = {ConfirmationStatus.CONFIRMED: "confirmed_at", ConfirmationStatus.REFUSED: "refused_at"}[answer]
    Identity.objects.filter(user=person(email)).update(**{column: clock.now()})


@pytest.mark.parametrize(("path", "refused"), [("/profile", 302), ("/api/profile", 401)])
def test_a_second_request_after_hours_uses_the_first_ones_confirmation(
    idp: DemoIdentityProvider,
    later: Callable[[float], None],
    asked: list[str],
    pauses: tuple[list[float], Meanwhile],
    path: str,
    refused: int,
) -> None:
    (ana, _), (bo, _), (taken, meanwhile) = sign_in(ANA), sign_in(BO), pauses
    later(5 * 60)
    for email in (ANA, BO):
        ask_elsewhere(email)
    meanwhile[:] = [nothing, nothing, lambda: hear_elsewhere(ANA, ConfirmationStatus.CONFIRMED)]
    assert ana.get(path).status_code == 200
    assert len(taken) == 3
    meanwhile[:] = [lambda: hear_elsewhere(BO, ConfirmationStatus.REFUSED)]
    assert bo.get(path).status_code == refused
    assert asked == []
    assert (ana.get(path).status_code, bo.get(path).status_code, len(taken)) == (200, refused, 4)


def test_a_second_request_after_hours_waits_a_second_at_most(
    idp: DemoIdentityProvider, later: Callable[[float], None], asked: list[str], pauses: tuple[list[float], Meanwhile]
) -> None:
    (ana, _), (taken, _) = sign_in(ANA), pauses
    later(5 * 60)
    ask_elsewhere(ANA)
    page = ana.get("/profile")
    assert (page.status_code, page["Retry-After"]) == (503, "5")
    assert sum(taken) == pytest.approx(1)
    taken.clear()
    later(11 / 60)  # longer than asking takes
    assert ana.get("/profile").status_code == 503
    assert taken == []
    later(0.5)
    assert ana.get("/profile").status_code == 200, "this request asks"
    assert (len(asked), taken) == (1, [])


def test_only_so_many_requests_wait_for_a_confirmation(
    idp: DemoIdentityProvider, later: Callable[[float], None], pauses: tuple[list[float], Meanwhile]
) -> None:
    (ana, _), (bo, _), (taken, meanwhile) = sign_in(ANA), sign_in(BO), pauses
    later(5 * 60)
    for email in (ANA, BO):
        ask_elsewhere(email)
    while confirmation._waiting.acquire(blocking=False):
        meanwhile.append(confirmation._waiting.release)
    release_all, meanwhile[:] = list(meanwhile), []
    assert ana.get("/profile").status_code == 503
    assert taken == []
    for release in release_all:
        release()
    meanwhile[:] = [lambda: hear_elsewhere(BO, ConfirmationStatus.CONFIRMED)]
    assert bo.get("/profile").status_code == 200
    assert len(taken) == 1


def test_a_second_request_after_minutes_waits_for_nothing(
    idp: DemoIdentityProvider, later: Callable[[float], None], pauses: tuple[list[float], Meanwhile]
) -> None:
    (ana, _), (taken, _) = sign_in(ANA), pauses
    later(60)
    ask_elsewhere(ANA)
    assert ana.get("/profile").status_code == 200
    assert taken == []


def test_a_session_that_rested_for_hours_uses_the_confirmation_of_another_one_of_the_person(
    idp: DemoIdentityProvider, later: Callable[[float], None], pauses: tuple[list[float], Meanwhile]
) -> None:
    (rested, _), (other, _), (bo, _), (taken, _) = sign_in(ANA), sign_in(ANA), sign_in(BO), pauses
    later(3 * 60)
    assert other.get("/profile").status_code == 200
    later(2 * 60)
    for email in (ANA, BO):
        ask_elsewhere(email)
    assert (rested.get("/profile").status_code, taken) == (200, [])
    assert bo.get("/profile").status_code == 503


def test_a_second_client_of_a_person_waits_for_the_confirmation_too(
    idp: DemoIdentityProvider, later: Callable[[float], None], pauses: tuple[list[float], Meanwhile]
) -> None:
    flows, (taken, meanwhile) = {}, pauses
    for email in (ANA, BO):
        browser, _ = sign_in(email)
        join(email)
        flows[email] = tokens(browser)
    later(5 * 60)
    for email, status in ((ANA, 200), (BO, 400)):
        ask_elsewhere(email)
        heard = ConfirmationStatus.CONFIRMED if status == 200 else ConfirmationStatus.REFUSED
        meanwhile[:] = [partial(hear_elsewhere, email, heard)]
        flow, given = flows[email]
        assert flow.refresh(given["refresh_token"]).status_code == status
    assert len(taken) == 2


@pytest.mark.django_db(transaction=True)
def test_two_requests_of_a_session_at_once_after_hours_are_both_answered(
    idp: DemoIdentityProvider, later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    ana, _ = sign_in(ANA)
    later(5 * 60)
    is_asking, may_answer = threading.Event(), threading.Event()
    post, statuses = confirmation._post, []

    def slow(known: Provider, token: str) -> Response:
        is_asking.set()
        assert may_answer.wait(60)
        return post(known, token)

    def first() -> None:
        statuses.append(ana.get("/profile").status_code)
        connections.close_all()

    def pause(seconds: float) -> None:
        may_answer.set()
        asking.join(60)

    monkeypatch.setattr(confirmation, "_post", slow)
    monkeypatch.setattr(confirmation, "confirm_person", partial(confirmation.confirm_person, pause=pause))
    second = Browser()
    second.cookies.load(ana.cookies.output(header=""))
    asking = threading.Thread(target=first)
    asking.start()
    assert is_asking.wait(60)
    statuses.append(second.get("/profile").status_code)
    pause(0)  # for a second request that did not wait
    assert statuses == [200, 200]


def test_while_the_provider_is_away_its_last_confirmation_counts_for_hours(
    idp: DemoIdentityProvider,
    later: Callable[[float], None],
    away: Callable[[], None],
    pauses: tuple[list[float], Meanwhile],
) -> None:
    browser, _ = sign_in(ANA)
    join(ANA)
    flow, given = tokens(browser)
    away()
    later(60)
    assert browser.get("/profile").status_code == 200
    answer = flow.refresh(given["refresh_token"])
    assert answer.status_code == 200
    later(4 * 60)
    page = browser.get("/profile")
    assert (page.status_code, page["Retry-After"]) == (503, "5")
    assert browser.get("/api/profile").json()["error"] == "unavailable"
    refused = flow.refresh(answer.json()["refresh_token"])
    assert (refused.status_code, refused.json()["error"]) == (503, "temporarily_unavailable")
    assert not AdminAuditEntry.objects.filter(event_type="oauth.person_refused").exists()
    forget_provider()  # it is back
    later(1)
    assert flow.refresh(answer.json()["refresh_token"]).status_code == 200, "the token was not used up"
    assert browser.get("/profile").status_code == 200


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, {"error": "invalid_grant"}, ConfirmationStatus.REFUSED),
        (400, {"error": "invalid_client"}, ConfirmationStatus.UNAVAILABLE),
        (401, {"error": "invalid_client"}, ConfirmationStatus.UNAVAILABLE),
        (500, {"error": "invalid_grant"}, ConfirmationStatus.UNAVAILABLE),
        (200, {}, ConfirmationStatus.UNAVAILABLE),
        (200, {"access_token": "a", "id_token": "x.y.z"}, ConfirmationStatus.UNAVAILABLE),
        (200, [], ConfirmationStatus.UNAVAILABLE),
        (302, {}, ConfirmationStatus.UNAVAILABLE),
        (200, {"access_token": "a"}, ConfirmationStatus.CONFIRMED),
    ],
)
def test_only_a_definite_no_is_one(
    idp: DemoIdentityProvider,
    later: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    body: object,
    expected: ConfirmationStatus,
) -> None:
    sign_in(ANA)
    later(15)
    answer = Response(status, {}, json.dumps(body).encode())
    monkeypatch.setattr(confirmation, "_post", lambda known, token: answer)
    assert confirmation.confirm_person(person(ANA).pk).status is expected


def test_one_asks_at_a_time_and_a_renewed_token_is_kept(
    idp: DemoIdentityProvider, later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(ANA)
    later(15)
    answers: list[ConfirmationStatus] = []
    answer = Response(200, {}, json.dumps({"access_token": "a", "refresh_token": "renewed"}).encode())

    def post(known: object, token: str) -> Response:
        answers.append(confirmation.confirm_person(person(ANA).pk).status)  # another request, at the same moment
        return answer

    monkeypatch.setattr(confirmation, "_post", post)
    assert confirmation.confirm_person(person(ANA).pk).status is ConfirmationStatus.CONFIRMED
    assert answers == [ConfirmationStatus.UNAVAILABLE]
    assert refresh_token_of(Identity.objects.get()) == "renewed"


def test_the_provider_s_token_is_sealed_for_its_row_and_goes_along_with_a_rotation(
    idp: DemoIdentityProvider, settings: LazySettings
) -> None:
    sign_in(ANA)
    sign_in(BO)
    one, two = Identity.objects.order_by("pk")
    token = refresh_token_of(one)
    assert token
    assert token.encode() not in bytes(one.refresh_sealed)
    two.refresh_sealed = one.refresh_sealed
    assert refresh_token_of(two) is None, "a copied ciphertext does not open"
    Identity.objects.update(refresh_key_id="test-1", refresh_sealed=settings.CREDENTIAL_KEYRING.wrap(b"x", b"y"))
    assert sum(batch.resealed for batch in reseal(REFRESH_TOKENS)) == 0, "what does not open stays"


def test_another_provider_gets_no_token_of_the_first(
    idp: DemoIdentityProvider, later: Callable[[float], None], asked: list[str]
) -> None:
    sign_in(ANA)
    Identity.objects.update(issuer="https://former.example")
    later(15)
    assert confirmation.confirm_person(person(ANA).pk).status is ConfirmationStatus.NOT_POSSIBLE
    assert asked == []


@pytest.fixture
def without_offline(idp: DemoIdentityProvider, settings: LazySettings) -> DemoIdentityProvider:
    """A provider that gives no refresh token."""
    settings.OIDC_OFFLINE_ACCESS = "off"
    return idp


def test_without_a_refresh_token_the_browser_asks(
    without_offline: DemoIdentityProvider, later: Callable[[float], None]
) -> None:
    ana, there = sign_in(ANA)
    assert not Identity.objects.get().refresh_sealed
    later(15)
    answer = ana.get("/profile?tab=1")
    query = parse_qs(urlsplit(answer["Location"]).query)
    assert query["prompt"] == ["none"]
    assert {"nonce", "state", "code_challenge"} <= set(query)
    back = follow(ana, there, answer)
    assert back["Location"] == "/profile?tab=1"
    assert ana.get("/profile").status_code == 200


def test_without_a_refresh_token_no_method_passes_unconfirmed(
    without_offline: DemoIdentityProvider, later: Callable[[float], None]
) -> None:
    (ana, there), (bo, at_bos) = sign_in(ANA), sign_in(BO)
    pages = {email: f"/orgs/{join(email).pk}/settings" for email in (ANA, BO)}
    change(without_offline, BO, "remove")
    later(15)
    for method in ("OPTIONS", "DELETE", "TRACE"):
        assert ana.generic(method, pages[ANA], HTTP_ACCEPT=HTML).status_code == 403
        assert ana.generic(method, pages[ANA]).status_code == 401
    assert ana.head("/api/profile").status_code == 401
    assert ana.head(pages[ANA], HTTP_HX_REQUEST="true").status_code == 401
    for browser, cookies, email in ((ana, there, ANA), (bo, at_bos, BO)):
        answer = browser.head(pages[email])
        assert (answer.status_code, answer.content) == (302, b"")
        assert "prompt=none" in answer["Location"]
        follow(browser, cookies, answer)
    assert ana.head(pages[ANA]).status_code == 200
    assert bo.head(pages[BO])["Location"].startswith("/signin?next=")


def test_a_removed_person_s_head_request_ends_the_session_too(
    idp: DemoIdentityProvider, later: Callable[[float], None], asked: list[str]
) -> None:
    (ana, _), (bo, _) = sign_in(ANA), sign_in(BO)
    pages = {email: f"/orgs/{join(email).pk}/settings" for email in (ANA, BO)}
    change(idp, ANA, "remove")
    later(15)
    assert ana.head(pages[ANA])["Location"].startswith("/signin?next=")
    assert bo.head(pages[BO]).status_code == 200
    assert len(asked) == 2


@pytest.mark.parametrize("path", ["//evil.example/x?y=1", "/%2Fevil.example/x?y=1"])
def test_without_a_refresh_token_the_browser_comes_back_to_this_site(
    without_offline: DemoIdentityProvider, later: Callable[[float], None], path: str
) -> None:
    ana, there = sign_in(ANA)
    later(15)
    back = follow(ana, there, ana.generic("GET", f"http://testserver{path}"))
    assert back["Location"] == "/%2Fevil.example/x?y=1"
    assert ana.get("/profile").status_code == 200


@pytest.mark.parametrize("is_removed", [True, False])
def test_without_a_sign_in_there_the_browser_is_signed_out_here(
    without_offline: DemoIdentityProvider, later: Callable[[float], None], is_removed: bool
) -> None:
    ana, there = sign_in(ANA)
    if is_removed:
        change(without_offline, ANA, "remove")
    else:
        there.clear()
    later(15)
    back = follow(ana, there, ana.get("/profile"))
    assert back["Location"] == "/signin?failed=again&next=%2Fprofile"
    assert "Sign in again" in ana.get(back["Location"]).content.decode()
    assert ana.get("/profile")["Location"].startswith("/signin?next=")


def test_while_the_provider_does_not_answer_the_browser_is_not_sent_in_circles(
    without_offline: DemoIdentityProvider, later: Callable[[float], None], away: Callable[[], None]
) -> None:
    ana, there = sign_in(ANA)
    away()
    later(15)
    assert follow(ana, there, ana.get("/profile?tab=1"))["Location"] == "/profile?tab=1"
    assert ana.get("/profile?tab=1").status_code == 200
    assert ana.get("/api/profile").status_code == 200
    later(1)
    assert "prompt=none" in ana.get("/profile")["Location"], "it is asked again"
    later(4 * 60)
    assert follow(ana, there, ana.get("/profile"))["Location"] == "/profile"
    assert ana.get("/profile").status_code == 503
    forget_provider()  # it is back
    later(1)
    assert follow(ana, there, ana.get("/profile"))["Location"] == "/profile"
    assert ana.get("/profile").status_code == 200


def test_a_confirmation_that_fails_ends_the_session(
    without_offline: DemoIdentityProvider, later: Callable[[float], None]
) -> None:
    ana, _ = sign_in(ANA)
    bo, _ = sign_in(BO)
    later(15)
    state = parse_qs(urlsplit(ana.get("/profile")["Location"]).query)["state"][0]
    answer = ana.get("/oidc/callback/", {"state": state, "code": "made up"})
    assert answer["Location"] == "/signin?failed=1&next=%2Fprofile"
    assert ana.get(answer["Location"]).status_code == 200
    assert ana.get("/profile")["Location"].startswith("/signin?next=")
    User.objects.filter(email=ANA).update(is_active=False)
    at_anas = httpx.post(Browser().get("/oidc/authenticate/")["Location"], data={"sub": ANA}, **PLAIN_HTTP).cookies
    answer = follow(bo, at_anas, bo.get("/profile"))
    assert answer["Location"] == "/signin?failed=deactivated"
    assert bo.get(answer["Location"]).status_code == 200


def test_without_a_refresh_token_json_and_forms_are_refused_and_change_nothing(
    without_offline: DemoIdentityProvider, later: Callable[[float], None]
) -> None:
    ana, there = sign_in(ANA)
    organization = join(ANA)
    later(15)
    answer = ana.patch("/api/profile", json.dumps({"displayName": "Ana"}), content_type="application/json")
    assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")
    assert answer.json()["requestId"]
    address, form = f"/orgs/{organization.pk}/settings", {"name": "New name"}
    page = ana.post(address, form, HTTP_ACCEPT=HTML)
    assert page.status_code == 403
    assert "Nothing changed" in page.content.decode()
    part = ana.get("/profile", HTTP_HX_REQUEST="true")
    assert (part.status_code, part["HX-Refresh"]) == (401, "true")
    follow(ana, there, ana.get("/profile"))
    assert ana.get("/api/profile").status_code == 200, "and goes on after a page"


def test_without_a_refresh_token_clients_last_for_days_only(
    without_offline: DemoIdentityProvider, later: Callable[[float], None], settings: LazySettings
) -> None:
    settings.OIDC_WORD_DAYS = 10
    browser, _ = sign_in(ANA)
    join(ANA)
    flow, given = tokens(browser)
    later(9 * 24 * 60)
    answer = flow.refresh(given["refresh_token"])
    assert answer.status_code == 200
    later(2 * 24 * 60)
    assert flow.refresh(answer.json()["refresh_token"]).json()["error"] == "invalid_grant"
    assert not TokenFamily.objects.exists()


def test_a_provider_that_offers_and_then_refuses_offline_access_is_asked_without(idp: DemoIdentityProvider) -> None:
    browser = Browser()
    asked_for = parse_qs(urlsplit(browser.get("/oidc/authenticate/?next=/profile")["Location"]).query)
    assert "offline_access" in asked_for["scope"][0]
    answer = browser.get("/oidc/callback/", {"error": "invalid_scope", "state": asked_for["state"][0]})
    assert answer["Location"] == "/oidc/authenticate/?next=%2Fprofile"
    asked_for = parse_qs(urlsplit(browser.get(answer["Location"])["Location"]).query)
    assert "offline_access" not in asked_for["scope"][0]
    answer = browser.get("/oidc/callback/", {"error": "invalid_scope", "state": asked_for["state"][0]})
    assert answer["Location"].startswith("/signin?failed=1"), "and there is no loop"


def test_a_session_that_does_not_know_when_is_asked_about(idp: DemoIdentityProvider, asked: list[str]) -> None:
    ana, _ = sign_in(ANA)
    session = ana.session
    del session["provider_word_at"]
    session.save()
    Identity.objects.update(confirmed_at=clock.now() - timedelta(hours=1))
    assert ana.get("/profile").status_code == 200
    assert len(asked) == 1
    assert isinstance(clock.now(), datetime)

"""GET /oauth/authorize: where errors go, and the steps before consent."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client as Browser
from pytest_django.fixtures import Settings

from gateway.coordination.rules import Rule
from gateway.lib import clock
from oauth_ext import redirect_uris
from oauth_ext.models import AuthorizationRequest, Client, Grant, RememberedConsent
from oauth_ext.services.cimd_clients import DocumentUnusable
from oauth_ext.views import authorize as view
from orgs.signin import provider
from orgs.signin.provider import Provider, ProviderUnavailable
from tests.api.oauth_ext.conftest import Service
from tests.api.oauth_ext.flow import ISSUER, LOOPBACK, PRIVATE, WEB, Flow, answer_of, make_flow, make_public_client
from tests.factories.cast import Cast

PROVIDER = Provider(
    issuer="https://idp.example",
    authorization_endpoint="https://idp.example/authorize",
    token_endpoint="https://idp.example/token",
    userinfo_endpoint="https://idp.example/userinfo",
    jwks_uri="https://idp.example/keys",
    end_session_endpoint="",
    offers_offline_access=False,
)


@pytest.fixture
def flow(cast: Cast) -> Flow:
    return make_flow(cast)


def on_a_page(response: object, *, reads: bool = True) -> str:
    """Returns the text of the error page, and checks that it does not redirect."""
    assert response.status_code == 400  # type: ignore[attr-defined]
    assert "Location" not in response  # type: ignore[operator]
    assert response["Content-Type"].startswith("text/html")  # type: ignore[index]
    assert response["Cache-Control"] == "no-store"  # type: ignore[index]
    assert "frame-ancestors 'none'" in response["Content-Security-Policy"]  # type: ignore[index]
    assert not reads or response.content  # type: ignore[attr-defined]
    return str(response.content.decode())  # type: ignore[attr-defined]


@pytest.mark.parametrize("who", ["nobody", "member"])
@pytest.mark.parametrize(
    "client_id", ["mcpc_unknown", "", None, "\x00", "é", "' OR 1=1--", "https://app.example/client.json", ["a", "b"]]
)
def test_an_unknown_client_gets_an_error_page(cast: Cast, who: str, client_id: object) -> None:
    flow = make_flow(cast, who)
    on_a_page(flow.authorize(client_id=client_id))
    assert not AuthorizationRequest.objects.exists()


def test_clients_that_may_not_ask_people(cast: Cast, flow: Flow, service: Service) -> None:
    Client.objects.filter(pk=service.client.pk).update(redirect_uris=WEB)
    on_a_page(flow.authorize(client_id=service.client.client_id))
    Client.objects.filter(pk=flow.client.pk).update(expires_at=clock.now() - timedelta(seconds=1))
    on_a_page(flow.authorize())
    flow.client.delete()
    on_a_page(flow.authorize())


@pytest.mark.parametrize("who", ["nobody", "member"])
@pytest.mark.parametrize(
    "sent",
    [
        None,
        "",
        "https://evil.example/cb",
        f"{WEB}?x=1",
        f"{WEB};p",
        f"{WEB}#",
        f"{WEB}#f",
        f"{WEB}/",
        "https://user@app.example/cb",
        "https://app.example:8443/cb",
        "https://app.example/CB",
        "http://app.example/cb",
        "//app.example/cb",
        "/cb",
        "javascript:alert(1)",
        "http://127.0.0.1:5000/other",
        "http://localhost:5000/cb",
        "http://127.0.0.1:5000@evil.example/cb",
        "cursor://evil/cb",
        [WEB, WEB],
        [WEB, "https://evil.example/cb"],
        "\x00",
    ],
)
def test_an_unregistered_redirect_address_gets_an_error_page(cast: Cast, who: str, sent: object) -> None:
    flow = make_flow(cast, who)
    page = on_a_page(flow.authorize(redirect_uri=sent, response_type="bad", code_challenge=None))
    assert "evil" not in page
    assert not AuthorizationRequest.objects.exists()


def test_an_address_that_is_no_query(flow: Flow) -> None:
    for query in ("a=%ff", "&".join(f"a{number}=1" for number in range(101))):
        on_a_page(flow.browser.get(f"/oauth/authorize?{query}"))


FAULTS = pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_type": ["code", "code"]}, "invalid_request"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short12345"}, "invalid_request"),
        ({"code_challenge": "x" * 44}, "invalid_request"),
        ({"code_challenge": "x" * 42 + "="}, "invalid_request"),
        ({"code_challenge": ["x" * 43, "y" * 43]}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "s256"}, "invalid_request"),
        ({"scope": "admin"}, "invalid_scope"),
        ({"scope": "mcp:nope"}, "invalid_scope"),
        ({"scope": "mcp openid"}, "invalid_scope"),
        ({"scope": " "}, "invalid_scope"),
        ({"scope": ["mcp", "mcp"]}, "invalid_request"),
        ({"code_challenge_method": ["S256", "S256"]}, "invalid_request"),
        ({"response_mode": ["query", "query"]}, "invalid_request"),
        ({"prompt": ["consent", "consent"]}, "invalid_request"),
        ({"prompt": "none consent"}, "invalid_request"),
        ({"resource": "https://else.example/v1/mcp"}, "invalid_target"),
        ({"resource": "http://testserver/v1/nope/mcp"}, "invalid_target"),
        ({"resource": ["http://testserver/v1/mcp", "https://else.example/"]}, "invalid_target"),
    ],
)


@pytest.mark.parametrize("redirect_uri", [WEB, LOOPBACK, PRIVATE])
@FAULTS
def test_other_faults_are_redirected_to_the_client_of_a_signed_in_person(
    cast: Cast, redirect_uri: str, changes: dict[str, object], error: str
) -> None:
    response = make_flow(cast, "member", redirect_uri).authorize(**changes)
    assert response["Location"].startswith(f"{redirect_uri}?")
    received = answer_of(response)
    assert set(received) == {"error", "error_description", "state", "iss"}
    assert (received["error"], received["state"], received["iss"]) == (error, "st4te", ISSUER)
    assert response["Cache-Control"] == "no-store"
    assert not AuthorizationRequest.objects.exists()


@pytest.mark.parametrize("redirect_uri", [WEB, LOOPBACK, PRIVATE])
@FAULTS
def test_a_link_with_our_name_leads_no_passer_by_to_a_client_that_registered_itself(
    cast: Cast, redirect_uri: str, changes: dict[str, object], error: str
) -> None:
    flow = make_flow(cast, "nobody", redirect_uri)
    page = on_a_page(flow.authorize(**changes))
    assert redirect_uris.shown_host(redirect_uri) in page
    assert f'href="{redirect_uri}' not in page
    Client.objects.filter(pk=flow.client.pk).update(registration_source=Client.RegistrationSource.CIMD)
    on_a_page(flow.authorize(**changes))
    # An operator vouches for the address of a client made by hand.
    Client.objects.filter(pk=flow.client.pk).update(registration_source=Client.RegistrationSource.MANUAL)
    assert answer_of(flow.authorize(**changes))["error"] == error


def test_the_page_of_a_passer_by_says_what_is_wrong(cast: Cast) -> None:
    flow = make_flow(cast, "nobody")
    page = on_a_page(flow.authorize(response_type="x"))
    assert "The app at app.example sent an invalid request. Only the response type code is supported." in page
    assert "prompt=none does not allow" in on_a_page(flow.authorize(prompt="none"))
    on_a_page(flow.authorize(state="é"))
    on_a_page(flow.browser.head(f"/oauth/authorize?{flow.query(response_type='x')}"), reads=False)


@pytest.mark.parametrize("registered", ["ms-word://ofe/x", "search-ms:query.x", "smb://evil.example/x", "myapp://cb"])
def test_a_scheme_that_was_accepted_once_is_not_used_any_more(cast: Cast, registered: str) -> None:
    for who in ("nobody", "member"):
        flow = Flow(make_public_client(registered, WEB), cast.client(who), registered)
        page = on_a_page(flow.authorize())
        assert "an address that isn’t accepted here" in page
        on_a_page(flow.authorize(response_type="x"))
    flow.ask(redirect_uri=WEB)
    assert AuthorizationRequest.objects.count() == 1


@pytest.mark.parametrize("state", ["x" * 4_097, "a\nb", "é", "\x00", ["a", "b"]])
def test_a_state_that_cannot_be_brought_back(flow: Flow, state: object) -> None:
    received = answer_of(flow.authorize(state=state))
    assert set(received) == {"error", "error_description", "iss"}
    assert received["error"] == "invalid_request"


def test_a_state_is_optional_and_comes_back_as_it_was(flow: Flow) -> None:
    assert "state" not in answer_of(flow.authorize(state=None, scope="x"))
    odd = "a b&c=d#e%20+/?".ljust(4_096, "x")
    assert answer_of(flow.authorize(state=odd, scope="x"))["state"] == odd


def test_somebody_signed_out_is_sent_to_the_provider_and_nothing_is_stored(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = make_flow(cast, "nobody")
    for _ in range(2):
        response = flow.authorize(scope="mcp:all", resource="http://testserver/v1/mcp")
        assert response.status_code == 302
        where = urlsplit(response["Location"])
        assert where.path == "/oidc/authenticate/"
        back = parse_qs(where.query)["next"][0]
        asked = flow.query(scope="mcp:all", resource="http://testserver/v1/mcp")
        assert back == f"/oauth/authorize?{asked}&after_sign_in=1"
        assert not response.cookies
    assert not AuthorizationRequest.objects.exists()
    assert not Grant.objects.exists()
    monkeypatch.setattr(provider, "current", lambda: PROVIDER)
    at_provider = flow.browser.get(response["Location"])
    assert at_provider["Location"].startswith("https://idp.example/authorize?")
    assert flow.browser.session["oidc_login_next"] == back


def test_a_provider_that_is_away_is_said_on_the_sign_in_page(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> Provider:
        raise ProviderUnavailable("away")

    monkeypatch.setattr(provider, "current", away)
    flow = make_flow(cast, "nobody")
    start = flow.authorize()["Location"]
    failed = urlsplit(flow.browser.get(start)["Location"])
    assert failed.path == "/signin"
    kept = parse_qs(failed.query)
    assert (kept["failed"], kept["next"]) == (["unreachable"], parse_qs(urlsplit(start).query)["next"])


def test_a_look_ahead_of_a_signed_in_browser_stores_nothing(flow: Flow) -> None:
    assert flow.browser.head(f"/oauth/authorize?{flow.query()}")["Location"].startswith("/oidc/")
    assert not AuthorizationRequest.objects.exists()


def test_two_requests_mint_no_code(flow: Flow) -> None:
    pages = {flow.ask(), flow.ask()}
    assert len(pages) == 2
    assert not Grant.objects.exists()


def test_what_was_asked_for_is_kept_as_it_was_checked(flow: Flow, vendor: str) -> None:
    flow.ask(scope="mcp:acme", resource=["HTTP://testserver/v1/mcp/", "http://testserver/v1/acme/mcp"])
    row = AuthorizationRequest.objects.get()
    assert (row.client, row.redirect_uri, row.state) == (flow.client, WEB, "st4te")
    assert row.scope == "mcp:acme"
    assert row.resource == ["http://testserver/v1/mcp", "http://testserver/v1/acme/mcp"]
    assert row.decided_at is None


@pytest.mark.parametrize("asked", [None, ""])
def test_without_a_scope_everything_is_asked_for(flow: Flow, asked: str | None) -> None:
    flow.ask(scope=asked)
    assert AuthorizationRequest.objects.get().scope == "mcp:all"
    assert AuthorizationRequest.objects.get().resource == ["http://testserver/v1/mcp"]


@pytest.mark.parametrize(
    ("registered", "sent"),
    [
        ("http://127.0.0.1/cb", "http://127.0.0.1:51999/cb"),
        ("http://localhost:3000/callback", "http://localhost:4000/callback"),
        ("http://127.0.0.1:33418/", "http://127.0.0.1:33418"),
        ("http://127.0.0.1:33418", "http://127.0.0.1:33418/"),
        (PRIVATE, PRIVATE),
    ],
)
def test_ports_of_loopback_addresses_are_free(cast: Cast, registered: str, sent: str) -> None:
    flow = Flow(make_public_client(registered), cast.client("member"), sent)
    flow.ask()
    assert AuthorizationRequest.objects.get().redirect_uri == sent


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods(db: None, method: str) -> None:
    answer = Browser().generic(method, "/oauth/authorize")
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")


def test_a_signed_in_person_cannot_fill_the_table(flow: Flow, settings: Settings) -> None:
    settings.BACKSTOP = Rule(f"authorize {clock.now().timestamp()}", limit=2, window_s=60)
    assert [flow.authorize().status_code for _ in range(3)] == [302, 302, 429]
    assert AuthorizationRequest.objects.count() == 2


def test_a_client_with_a_metadata_document(cast: Cast, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = make_flow(cast, redirect_uri=WEB)
    asked: list[dict[str, str]] = []

    def documented(**wanted: str) -> Client:
        asked.append(wanted)
        if "missing" in wanted["client_id"]:
            raise DocumentUnusable("The client document returned status 404.")
        return flow.client

    monkeypatch.setattr(view, "cimd_client", documented)
    settings.CIMD_ENABLED = False
    on_a_page(flow.authorize(client_id="https://app.example/client.json"))
    assert asked == []
    settings.CIMD_ENABLED = True
    assert flow.authorize(client_id="https://app.example/client.json").status_code == 302
    assert asked == [{"client_id": "https://app.example/client.json", "address": "ip:127.0.0.1"}]
    assert "status 404" in on_a_page(flow.authorize(client_id="https://app.example/missing.json"))
    flow.ask()  # registered clients stay known
    assert len(asked) == 2


def remember(flow: Flow) -> None:
    """The person allows the client once."""
    assert "code" in answer_of(flow.answer(flow.ask()))


def test_consent_is_remembered(flow: Flow) -> None:
    remember(flow)
    received = answer_of(flow.authorize())
    assert set(received) == {"code", "state", "iss"}
    assert flow.redeem(received["code"]).status_code == 200
    assert "code" in answer_of(flow.authorize(scope="mcp"))  # the same as mcp:all


def test_whoever_had_to_sign_in_first_is_shown_the_page(cast: Cast, flow: Flow) -> None:
    """A provider's policy may hold redirects after its form to our address, so the chain of them has to end here."""
    remember(flow)
    sign_in = Flow(flow.client, cast.client("nobody")).authorize()
    back = parse_qs(urlsplit(sign_in["Location"]).query)["next"][0]
    after = flow.browser.get(back)
    assert after["Location"].startswith("/oauth/authorize/consent?request=")
    page = flow.browser.get(after["Location"])
    assert (page.status_code, "https:" in page["Content-Security-Policy"]) == (200, True)
    assert "code" in answer_of(flow.answer(after["Location"]))
    again = parse_qs(urlsplit(cast.client("nobody").get(back)["Location"]).query)["next"][0]
    assert again == back  # marked once, however often somebody has to sign in
    assert "code" in answer_of(flow.authorize())


def test_no_page_of_ours_is_shown_to_a_client_that_forbids_one(cast: Cast, flow: Flow) -> None:
    """The exception is a signed-out browser, which is never redirected to an address that anybody may register."""

    def refused(asking: Flow) -> None:
        received = answer_of(asking.authorize(prompt="none"))
        assert set(received) == {"error", "error_description", "state", "iss"}
        assert (received["error"], received["state"], received["iss"]) == ("interaction_required", "st4te", ISSUER)
        assert not AuthorizationRequest.objects.filter(decided_at=None).exists()

    nobody = Flow(flow.client, cast.client("nobody"))
    refused(flow)
    on_a_page(nobody.authorize(prompt="none"))
    remember(flow)
    assert "code" in answer_of(flow.authorize(prompt="none"))
    on_a_page(nobody.authorize(prompt="none"))
    refused(Flow(flow.client, cast.client("owner")))
    refused(Flow(flow.client, flow.browser, LOOPBACK))  # an address on the computer is always asked for


@pytest.mark.parametrize("prompt", ["login", "select_account", "create", "unheard-of", "login select_account"])
def test_prompts_that_mean_nothing_here_are_ignored(flow: Flow, prompt: str) -> None:
    flow.ask(prompt=prompt)
    remember(flow)
    assert "code" in answer_of(flow.authorize(prompt=prompt))


def test_consent_is_asked_for_again_when_anything_differs(cast: Cast, flow: Flow, vendor: str) -> None:
    remember(flow)
    flow.ask(scope="mcp:acme")
    flow.ask(prompt="consent")
    flow.ask(redirect_uri=LOOPBACK)
    Client.objects.filter(pk=flow.client.pk).update(redirect_uris=f"{WEB} https://other.example/cb")
    flow.ask(redirect_uri="https://other.example/cb")
    Flow(flow.client, cast.client("owner")).ask()
    make_flow(cast).ask()
    RememberedConsent.objects.update(expires_at=clock.now())
    flow.ask()


@pytest.mark.parametrize("redirect_uri", [LOOPBACK, PRIVATE])
def test_what_stays_on_the_computer_is_always_asked_for(cast: Cast, redirect_uri: str) -> None:
    flow = make_flow(cast, redirect_uri=redirect_uri)
    for _ in range(2):
        assert "code" in answer_of(flow.answer(flow.ask()))
    assert not RememberedConsent.objects.exists()


def test_whoever_has_several_organizations_chooses_each_time(cast: Cast, flow: Flow) -> None:
    remember(flow)
    cast.other_org.memberships.create(user=cast.user("member"))
    flow.ask()


def test_a_consent_ends_with_the_membership(cast: Cast, flow: Flow) -> None:
    remember(flow)
    cast.org.memberships.get(user=cast.user("member")).delete()
    flow.ask()
    cast.other_org.memberships.create(user=cast.user("member"))
    flow.ask()  # the consent for one organization is none for another


def test_a_consent_is_for_one_address_and_not_for_its_host(cast: Cast) -> None:
    flow = Flow(make_public_client(WEB, f"{WEB}/other", f"{WEB}?x=1"), cast.client("member"))
    remember(flow)
    for other in (f"{WEB}/other", f"{WEB}?x=1"):
        flow.ask(redirect_uri=other)  # another page of this host may belong to others
    elsewhere = Flow(flow.client, flow.browser, f"{WEB}/other")
    remember(elsewhere)
    assert "code" in answer_of(elsewhere.authorize())
    assert "code" in answer_of(flow.authorize())
    assert RememberedConsent.objects.count() == 2
    RememberedConsent.objects.update(redirect_sha256=None)  # as earlier releases wrote them
    flow.ask()

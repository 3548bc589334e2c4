"""The person's browser against a gateway, a provider and an application that exist in memory only."""

from __future__ import annotations

from urllib.parse import parse_qs

import httpx
import pytest

from tests.clients.browser import APPROVE, CANCEL, DENY, Browser, BrowserError, authorize, decide_device

GATEWAY, PROVIDER, APPLICATION = "http://gateway.example", "http://provider.example", "http://127.0.0.1:5000/cb"
AUTHORIZE = f"{GATEWAY}/oauth/authorize?client_id=c&redirect_uri=http%3A%2F%2F127.0.0.1%3A5000%2Fcb"
SIGN_IN_PAGE = '<a href="/">Home</a><a href="/oidc/authenticate/?next=/oauth/authorize%3Fkept">Continue</a>'
CONSENT_PAGE = (
    '<form method="post"><button name="d" value="no">Cancel</button><button name="d" value="yes">Allow</button>'
)
DEVICE_PAGE = '<form method="post"><input name="user_code" value="WDJB-MJHT"><button>Continue</button></form>'
CONFIRM_PAGE = (
    '<form method="post"><button name="d" value="no">Deny</button><button name="d" value="yes">Approve</button>'
)


class World:
    """Answers every request; what the pages' policy is and whether the person was asked before can be set."""

    def __init__(self, policy: str = "form-action 'self' http://127.0.0.1:*", is_approved: bool = False) -> None:
        self.policy, self.is_approved = policy, is_approved
        self.sent_headers: httpx.Headers | None = None

    def browser(self) -> Browser:
        """A signed-out browser."""
        return Browser(GATEWAY, "alice@example.com", httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.host == "provider.example":
            return self._provider(request)
        assert request.url.host == "gateway.example", "the application is told by nobody but deliver()"
        if request.url.path == "/signin":
            return httpx.Response(200, text=SIGN_IN_PAGE)
        if request.url.path == "/oidc/authenticate/":
            return httpx.Response(302, headers={"Location": f"{PROVIDER}/authorize?state=s"})
        if request.url.path == "/oidc/callback/":
            back = {"Location": "/oauth/authorize?kept", "Set-Cookie": "session=alice; Path=/"}
            return httpx.Response(302, headers=back)
        if request.headers.get("cookie") != "session=alice":
            return httpx.Response(302, headers={"Location": "/signin?next=..."})
        return self._device(request) if request.url.path == "/device" else self._consent(request)

    def _provider(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, text='<form method="post"><input name="sub"><button>Sign in</button></form>')
        assert parse_qs(request.content.decode()) == {"sub": ["alice@example.com"]}
        return httpx.Response(302, headers={"Location": f"{GATEWAY}/oidc/callback/?code=c"})

    def _consent(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET" and not self.is_approved:
            return httpx.Response(200, text=CONSENT_PAGE, headers={"Content-Security-Policy": self.policy})
        self.sent_headers = request.headers
        answer = "error=access_denied" if b"d=no" in request.content else "code=abc"
        return httpx.Response(302, headers={"Location": f"{APPLICATION}?{answer}"})

    def _device(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, text=DEVICE_PAGE)
        if b"user_code" in request.content:
            return httpx.Response(200, text=CONFIRM_PAGE)
        return httpx.Response(200, text="Connected" if b"d=yes" in request.content else "Denied")


def test_authorize_signs_in_and_allows() -> None:
    world = World()
    with world.browser() as browser:
        assert authorize(browser, AUTHORIZE) == f"{APPLICATION}?code=abc"
    assert world.sent_headers is not None
    assert world.sent_headers["origin"] == GATEWAY
    assert world.sent_headers["sec-fetch-site"] == "same-origin"


def test_authorize_can_cancel() -> None:
    with World().browser() as browser:
        assert authorize(browser, AUTHORIZE, CANCEL) == f"{APPLICATION}?error=access_denied"


def test_authorize_goes_back_at_once_when_the_person_was_asked_before() -> None:
    with World(is_approved=True).browser() as browser:
        assert authorize(browser, AUTHORIZE) == f"{APPLICATION}?code=abc"


def test_a_policy_that_holds_the_person_back_is_an_error() -> None:
    with (
        World(policy="form-action 'self'").browser() as browser,
        pytest.raises(BrowserError, match=r"forbids the way to http://127\.0\.0\.1:5000"),
    ):
        authorize(browser, AUTHORIZE)


def test_somebody_elses_address_is_an_error() -> None:
    with World().browser() as browser, pytest.raises(BrowserError, match="not the redirect_uri"):
        authorize(browser, AUTHORIZE.replace("5000", "5001"))


def test_a_missing_button_is_an_error_that_shows_the_page() -> None:
    with World().browser() as browser, pytest.raises(BrowserError, match=r"'Approve' on 200 .*/oauth/authorize"):
        decide_device(browser, AUTHORIZE)


@pytest.mark.parametrize(("button", "said"), [(APPROVE, "Connected"), (DENY, "Denied")])
def test_a_device_is_decided(button: str, said: str) -> None:
    with World(is_approved=False).browser() as browser:
        browser.open("/profile")
        assert decide_device(browser, "/device?user_code=WDJB-MJHT", button).text == said

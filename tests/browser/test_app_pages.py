"""The pages for an app or a device that wants in: consent, device approval, connected apps.

Each page is held to axe, to the width of a phone and to the policy of pages, in both themes. The picture of a page with
a fault is left in the test's folder.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Visitor
from tests.browser.looking import PHONE, SCREENS, faults_in, press

NewVisitor = Callable[..., Visitor]
WEB, LOOPBACK = "https://app.example/cb", "http://127.0.0.1:43120/callback"
VERIFIER = "a-verifier-of-the-browser-tests-0123456789-0123456789"


def post(someone: Visitor, path: str, **content: Any) -> dict[str, Any]:
    """The service's answer to a program that identifies itself in the body."""
    answer = httpx.post(f"{someone.base}{path}", trust_env=False, timeout=20, **content)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


class App:
    """A client that registered itself; where its answers would go, a page says that they arrived."""

    def __init__(self, someone: Visitor, *redirect_uris: str, name: str = "Night editor") -> None:
        self.someone, self.redirect_uri = someone, redirect_uris[0]
        body = {"client_name": name, "redirect_uris": list(redirect_uris)}
        self.client_id: str = post(someone, "/oauth/register", json=body)["client_id"]
        someone.page.context.route("https://app.example/**", self._arrived)
        someone.page.context.route("http://127.0.0.1:43120/**", self._arrived)

    @staticmethod
    def _arrived(route: Route) -> None:
        page = "<!doctype html><html lang=en><title>App</title><link rel=icon href='data:,'><h1>Back in the app</h1>"
        route.fulfill(body=page, content_type="text/html")

    def address(self, **changes: str) -> str:
        """The path that the app opens in the person's browser."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "state": "st4te",
            **changes,
        }
        return f"/oauth/authorize?{urlencode(query)}"

    def ask(self, **changes: str) -> Page:
        """The page that comes of it."""
        return self.someone.open(self.address(**changes))

    def received(self) -> dict[str, str]:
        """The parameters that the browser brought back to the app."""
        page = self.someone.page
        expect(page.get_by_role("heading", name="Back in the app")).to_be_visible()
        assert page.url.startswith(f"{self.redirect_uri}?"), page.url
        return {name: value for name, (value,) in parse_qs(urlsplit(page.url).query).items()}

    def redeem(self, code: str) -> dict[str, Any]:
        """Its tokens."""
        form = {
            "grant_type": "authorization_code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code": code,
            "code_verifier": VERIFIER,
        }
        return post(self.someone, "/oauth/token", data=form)


class Eyes:
    """Looks at a page: its faults are collected, its pictures are kept."""

    def __init__(self, someone: Visitor, folder: Path) -> None:
        self.someone, self.folder = someone, folder
        self.found: list[str] = []

    def look(self, name: str) -> None:
        """At the page as it is now."""
        self.found += faults_in(self.someone.page, SCREENS, pictures=self.folder / name)


@pytest.fixture
def eyes(visitor: NewVisitor, tmp_path: Path) -> Eyes:
    """Of somebody with a phone who has not signed in."""
    return Eyes(visitor(viewport={"width": PHONE, "height": 800}), tmp_path)


def sign_in_where_asked(page: Page, email: str) -> None:
    """From the sign-in page on, wherever it leads back to."""
    page.get_by_role("link", name="Continue with").click()
    sign_in_at_provider(page, email)


def sign_in_at_provider(page: Page, email: str) -> None:
    """On the provider's own page, where an app leads a signed-out person at once."""
    page.get_by_label("E-mail address").fill(email)
    page.get_by_role("button", name="Sign in").click()


def test_the_consent_page(eyes: Eyes) -> None:
    someone, page = eyes.someone, eyes.someone.page
    org = someone.found_organization("Nordwind")
    app, local = App(someone, WEB), App(someone, LOOPBACK, name="A terminal with quite a long name of its own")
    app.ask()
    expect(page.get_by_text("You can’t use any vendors in Nordwind yet. Missing: a connected vendor.")).to_be_visible()
    expect(page.get_by_text("We haven’t verified app.example.")).to_be_visible()
    expect(page.get_by_text("The app registered itself 1 minute ago.")).to_be_visible()
    eyes.look("no-vendor")
    press(page.get_by_role("button", name="Allow"))
    assert set(app.received()) == {"code", "state", "iss"}
    app.ask(scope="mcp:acme")
    eyes.look("needs-credentials")
    page.get_by_label("API key").fill("a-wrong-key")
    press(page.get_by_role("button", name="Connect Acme RMM"))
    expect(page.get_by_role("alert")).to_be_visible()
    eyes.look("wrong-credentials")
    someone.has_acme(org)
    local.ask()
    expect(page.get_by_text("You’ll be redirected to an app on this computer (127.0.0.1).")).to_be_visible()
    expect(page.get_by_text("We haven't verified")).to_have_count(0)
    eyes.look("loopback")
    press(page.get_by_role("button", name="Cancel"))
    assert local.received()["error"] == "access_denied"
    someone.open("/welcome").get_by_label("Organization name").fill("Südwind Beteiligungen und Verwaltungen")
    press(page.get_by_role("button", name="Create organization"))
    page.wait_for_url(f"{someone.base}/orgs/*")
    app.ask()
    eyes.look("two-organizations")
    someone.open("/oauth/authorize?client_id=nobody")
    eyes.look("unknown-app")
    assert not eyes.found, "\n".join(eyes.found)


def test_a_member_learns_whom_to_ask(eyes: Eyes, visitor: NewVisitor) -> None:
    owner, someone = visitor(), eyes.someone
    org = owner.found_organization("Nordwind")
    owner.has_acme(org)
    link = owner.invitation(org)
    someone.sign_in(name="Bo Berg")
    someone.open(link)
    press(someone.page.get_by_role("button", name="Join"))
    someone.page.wait_for_url(f"{someone.base}{org}")
    page = App(someone, WEB).ask()
    expect(page.get_by_text("No access")).to_be_visible()
    message = page.get_by_role("region", name="Message for an admin")
    expect(message).to_contain_text("Could you give me access to Acme RMM")
    expect(page.get_by_text("Missing: access to Acme RMM.")).to_be_visible()
    expect(page.get_by_role("button", name="Allow")).to_be_enabled()
    eyes.look("member")
    assert not eyes.found, "\n".join(eyes.found)


def test_connected_apps(eyes: Eyes) -> None:
    someone, page = eyes.someone, eyes.someone.page
    org = someone.found_organization("Nordwind")
    someone.open(f"{org}/apps")
    eyes.look("no-app")
    someone.has_acme(org)
    for name, address in (("Night editor", WEB), ("A terminal with quite a long name of its own", LOOPBACK)):
        app = App(someone, address, name=name)
        app.ask()
        press(page.get_by_role("button", name="Allow"))
        received = app.received()
        assert set(received) == {"code", "state", "iss"}
        app.redeem(received["code"])
    someone.open(f"{org}/apps")
    eyes.look("two-apps")
    press(page.get_by_role("link", name="Revoke Night editor of"))
    eyes.look("question")
    press(page.get_by_role("button", name="Revoke", exact=True))
    expect(page.get_by_role("status").filter(has_text="Night editor is disconnected.")).to_be_visible()
    eyes.look("revoked")
    assert not eyes.found, "\n".join(eyes.found)


def test_the_device_page(eyes: Eyes) -> None:
    someone, page = eyes.someone, eyes.someone.page
    ready = someone.ready
    service_client = {"client_id": ready["client_id"], "client_secret": ready["client_secret"]}

    started = post(someone, "/oauth/device_authorization", data=service_client)
    page.goto(started["verification_uri_complete"])
    sign_in_where_asked(page, ready["owner_email"])
    expect(page.get_by_label("Code from your agent")).to_have_value(started["user_code"])
    eyes.look("enter")
    page.get_by_label("Code from your agent").fill("BBBB-BBBB")
    press(page.get_by_role("button", name="Continue"))
    expect(page.get_by_role("alert")).to_contain_text(
        "This code isn’t valid or has expired. Compare it with the device’s screen, or start again there."
    )
    eyes.look("wrong-code")
    page.get_by_label("Code from your agent").fill(started["user_code"].lower())
    press(page.get_by_role("button", name="Continue"))
    expect(page.get_by_text("Do you have this code on a screen in front of you?")).to_be_visible()
    eyes.look("confirm")
    press(page.get_by_role("button", name="Approve"))
    expect(page.get_by_role("heading", name="Connected")).to_be_visible()
    eyes.look("approved")
    someone.open(f"/orgs/{ready['org_id']}").locator("summary", has_text="Account").click()
    page.get_by_role("link", name="Approve a device").click()
    another = post(someone, "/oauth/device_authorization", data=service_client)
    page.get_by_label("Code from your agent").fill(another["user_code"])
    press(page.get_by_role("button", name="Continue"))
    press(page.get_by_role("button", name="Deny"))
    expect(page.get_by_role("heading", name="Denied")).to_be_visible()
    eyes.look("denied")
    someone.open(f"/orgs/{ready['org_id']}/apps")
    eyes.look("apps-of-everybody")
    assert not eyes.found, "\n".join(eyes.found)


def test_somebody_who_has_to_sign_in_first_gets_past_a_strict_provider(visitor: NewVisitor) -> None:
    """The demo provider's form leads to our address alone. Some browsers end a chain of redirects that goes on to the
    app in that policy, unseen by the person, so ours ends on the consent page although the app was allowed before.
    """
    someone = visitor()
    email = someone.ready["owner_email"]
    app = App(someone, WEB)
    app.ask()
    sign_in_at_provider(someone.page, email)
    someone.page.get_by_role("button", name="Allow").click()
    assert set(app.received()) == {"code", "state", "iss"}
    remembered = someone.page.context.request.get(f"{someone.base}{app.address()}", max_redirects=0)
    assert remembered.headers["location"].startswith(f"{WEB}?code=")
    someone.page.context.clear_cookies()
    app.ask()
    sign_in_at_provider(someone.page, email)
    expect(someone.page.get_by_role("heading", name="Connect “Night editor”?")).to_be_visible()
    someone.page.get_by_role("button", name="Allow").click()
    assert set(app.received()) == {"code", "state", "iss"}

"""A public client and a person's browser, walking through the authorization code flow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.http import HttpResponse
from django.test import Client as Browser

from gateway.lib import secrets
from oauth_ext import pkce
from oauth_ext.models import Client
from tests.api.oauth_ext.conftest import post
from tests.factories.cast import Cast

WEB = "https://app.example/cb"
LOOPBACK = "http://127.0.0.1:5000/cb"
PRIVATE = "cursor://anysphere.cursor-mcp/oauth/callback"
ISSUER = "http://testserver"


def make_public_client(*redirect_uris: str, name: str = "Some agent") -> Client:
    """A client as registration makes them."""
    return Client.objects.create(
        client_id=f"mcpc_{secrets.random_base62(24)}",
        client_secret="",
        client_type=Client.CLIENT_PUBLIC,
        authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
        registration_source=Client.RegistrationSource.DCR,
        redirect_uris=" ".join(redirect_uris or (WEB, LOOPBACK, PRIVATE)),
        name=name,
    )


def answer_of(response: HttpResponse) -> dict[str, str]:
    """The parameters that a redirect brings to the client."""
    assert response.status_code == 302, response.content
    return dict(parse_qsl(urlsplit(response["Location"]).query, keep_blank_values=True))


@dataclass
class Flow:
    """One client, one browser, one pair of verifier and challenge."""

    client: Client
    browser: Browser
    redirect_uri: str = WEB
    verifier: str = field(default_factory=lambda: secrets.random_url_safe() + "-._~")

    def query(self, **changes: Any) -> str:
        """A complete query string; None leaves a parameter out, a list repeats it."""
        known: dict[str, Any] = {
            "response_type": "code",
            "client_id": self.client.client_id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": pkce.challenge_of(self.verifier),
            "code_challenge_method": "S256",
            "state": "st4te",
        }
        wanted = {name: value for name, value in {**known, **changes}.items() if value is not None}
        return urlencode(wanted, doseq=True)

    def authorize(self, **changes: Any) -> HttpResponse:
        """GET /oauth/authorize."""
        return self.browser.get(f"/oauth/authorize?{self.query(**changes)}")

    def ask(self, **changes: Any) -> str:
        """The address of the consent page that a valid request leads to."""
        response = self.authorize(**changes)
        assert response.status_code == 302, response.content
        assert response["Location"].startswith("/oauth/authorize/consent?request="), response["Location"]
        return str(response["Location"])

    def answer(self, page: str, action: str = "allow", **fields: str) -> HttpResponse:
        """POST the consent form as the page has it."""
        shown = self.browser.get(page)
        assert shown.status_code == 200, shown.content
        chosen = shown.context["chosen"]
        organization = str(chosen.organization_id) if chosen else ""
        return self.browser.post(page, {"organization": organization, "action": action, **fields})

    def code(self, **changes: Any) -> str:
        """A fresh code, by consent, whether or not it is remembered."""
        return answer_of(self.answer(self.ask(**{"prompt": "consent", **changes})))["code"]

    def redeem(self, code: str, /, **changes: str | None) -> HttpResponse:
        """POST the code to the token endpoint."""
        known = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "client_id": self.client.client_id,
            "code_verifier": self.verifier,
        }
        return post({name: value for name, value in {**known, **changes}.items() if value is not None})

    def refresh(self, refresh_token: str, **changes: str) -> HttpResponse:
        """POST the refresh token to the token endpoint."""
        known = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": self.client.client_id}
        return post({**known, **changes})

    def tokens(self, **changes: Any) -> dict[str, Any]:
        """A first pair of tokens, by consent."""
        response = self.redeem(self.code(**changes))
        assert response.status_code == 200, response.content
        body: dict[str, Any] = response.json()
        return body


def make_flow(cast: Cast, who: str = "member", redirect_uri: str = WEB, **client: Any) -> Flow:
    """A client of its own and a browser in which `who` is signed in."""
    return Flow(make_public_client(**client), cast.client(who), redirect_uri)

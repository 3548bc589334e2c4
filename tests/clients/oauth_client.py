"""A public OAuth client in a few lines of HTTP, for what no client library does: bodies and moments of our choice."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from tests.clients.browser import Browser, authorize

REDIRECT_URI = "http://127.0.0.1:43120/callback"
PLAIN_BODY = {"client_name": "Plain client", "redirect_uris": [REDIRECT_URI]}


class OAuthClient:
    """A client that has registered itself with `body`; `registered` is what the server answered."""

    def __init__(self, http: httpx.Client, body: Mapping[str, Any] | None = None) -> None:
        self.http = http
        self.registration = http.post("/oauth/register", json=dict(body or PLAIN_BODY))
        assert self.registration.status_code == 201, self.registration.text
        self.registered: dict[str, Any] = self.registration.json()

    @property
    def client_id(self) -> str:
        """Its id."""
        found: str = self.registered["client_id"]
        return found

    def sign_in(self, browser: Browser, **changes: str) -> dict[str, Any]:
        """The tokens that a person gives it; `changes` are of the authorization request."""
        verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(16)
        digest = hashlib.sha256(verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT_URI,
            "resource": f"{browser.origin}/v1/mcp",
            "state": state,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            **changes,
        }
        location = authorize(browser, f"{browser.origin}/oauth/authorize?{urlencode(query)}")
        answer = {name: value for name, (value,) in parse_qs(urlsplit(location).query).items()}
        assert answer.keys() == {"code", "state", "iss"}, location
        assert (answer["state"], answer["iss"]) == (state, browser.origin)
        return self.token(
            grant_type="authorization_code",
            code=answer["code"],
            redirect_uri=query["redirect_uri"],
            code_verifier=verifier,
            resource=query["resource"],
        )

    def token(self, **form: str) -> dict[str, Any]:
        """The answer of the token endpoint, which must be no refusal."""
        answer = self.http.post("/oauth/token", data={"client_id": self.client_id, **form})
        assert answer.status_code == 200, answer.text
        assert answer.headers["Cache-Control"] == "no-store"
        found: dict[str, Any] = answer.json()
        return found

    def revoke(self, token: str) -> None:
        """The token is worth nothing any more."""
        answer = self.http.post("/oauth/revoke", data={"client_id": self.client_id, "token": token})
        assert (answer.status_code, answer.content) == (200, b""), answer.text

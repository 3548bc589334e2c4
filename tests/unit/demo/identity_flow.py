"""A client of the demo identity provider in memory: what the tests of its endpoints share."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.testclient import TestClient

from demo.identity_keys import SigningKey, new_signing_key
from demo.identity_provider import create_app
from demo.identity_requests import Registration

ISSUER = "http://127.0.0.1:9400"
ORIGIN = "http://127.0.0.1:8000"
CALLBACK = f"{ORIGIN}/oidc/callback/"
CLIENT_ID, CLIENT_SECRET = "gateway", "a-secret-for-the-tests"
VERIFIER = "a-verifier-of-the-length-that-the-standard-wants"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
CLIENT_FORM = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}


@cache
def signing_key() -> SigningKey:
    """One key for all tests: making one takes a while."""
    return new_signing_key()


@dataclass
class ManualClock:
    """Seconds since the epoch that pass only when a test says so."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Flow:
    """The provider, and a client that walks it."""

    clock: ManualClock = field(default_factory=ManualClock)
    http: TestClient = field(init=False)

    def __post_init__(self) -> None:
        registration = Registration(CLIENT_ID, CLIENT_SECRET, (ORIGIN,))
        app = create_app(issuer=ISSUER, registration=registration, key=signing_key(), clock=self.clock)
        self.http = TestClient(app, base_url=ISSUER, follow_redirects=False)

    def query(self, **changes: str | None) -> dict[str, str]:
        """A correct authorization request with some parameters changed, or left out by None."""
        correct = {
            "response_type": "code",
            "client_id": CLIENT_ID,
            "redirect_uri": CALLBACK,
            "scope": "openid email profile",
            "state": "the-state",
            "nonce": "the-nonce",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
        }
        return {name: value for name, value in {**correct, **changes}.items() if value is not None}

    def sign_in(self, email: str = "Alice@Example.com", *, name: str = "", **changes: str | None) -> str:
        """The code that the client gets back."""
        response = self.http.post("/oauth2/authorize", params=self.query(**changes), data={"sub": email, "name": name})
        assert response.status_code == 302, response.text
        return self.answer(response)["code"]

    def exchange(self, code: str, /, **changes: str | None) -> Any:
        """The token endpoint's response to a correct exchange with some fields changed, or left out by None."""
        correct = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
            **CLIENT_FORM,
        }
        form = {field: value for field, value in {**correct, **changes}.items() if value is not None}
        return self.http.post("/oauth2/token", data=form)

    @staticmethod
    def answer(response: Any) -> dict[str, str]:
        """The parameters of a redirect to the client."""
        location = urlsplit(response.headers["location"])
        assert f"{location.scheme}://{location.netloc}{location.path}" == CALLBACK
        return {name: values[0] for name, values in parse_qs(location.query, strict_parsing=True).items()}

"""A service client with its secret, the token endpoint, and keys that no other test has seen."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client as Browser
from pytest_django.fixtures import Settings

from gateway.coordination.rules import Rule
from gateway.lib import clock
from oauth_ext.jwt import keys
from oauth_ext.models import Client
from oauth_ext.services.service_clients import create_service_client
from tests.factories.cast import Cast
from tests.factories.tenant import load_vendor


@pytest.fixture(autouse=True)
def fresh_keys() -> Iterator[None]:
    """A process keeps its keys for seconds; the rows of a test are gone sooner."""
    keys.forget()
    yield
    keys.forget()


@pytest.fixture(autouse=True)
def own_windows(settings: Settings, request: pytest.FixtureRequest) -> None:
    """Limits count in windows that no other test uses, and are wide: what they limit has tests of its own."""
    for name in (
        "BACKSTOP",
        "CLIENT_REGISTRATIONS",
        "CLIENT_REGISTRATIONS_OF_ALL",
        "DEVICE_STARTS",
        "REFUSED_TOKEN_REQUESTS",
        "REFUSED_TOKENS_OF_CLIENT",
        "TOKENS_LATELY",
        "TOKENS_OF_CLIENT",
    ):
        rule = getattr(settings, name)
        own = f"{rule.name} {request.node.name} {clock.now().timestamp()}"
        setattr(settings, name, Rule(own, limit=1_000_000, window_s=rule.window_s))


@dataclass
class Service:
    """A service client of the cast's first organization and the secret it was given."""

    client: Client
    secret: str

    @property
    def basic(self) -> str:
        """Its Authorization header."""
        return basic(self.client.client_id, self.secret)

    def token(self, **fields: str) -> str:
        """An access token by the client credentials grant."""
        answer = post(self.fields(**fields))
        assert answer.status_code == 200, answer.content
        return str(answer.json()["access_token"])

    def fields(self, **more: str) -> dict[str, str]:
        """A complete request with the credentials in the form."""
        known = {
            "grant_type": "client_credentials",
            "client_id": self.client.client_id,
            "client_secret": self.secret,
        }
        return {**known, **more}


def basic(client_id: str, secret: str) -> str:
    """An Authorization header."""
    return f"Basic {base64.b64encode(f'{client_id}:{secret}'.encode()).decode()}"


def post(fields: dict[str, str] | str, path: str = "/oauth/token", **headers: str) -> HttpResponse:
    """POST a form to the token endpoint from a client without cookies."""
    from urllib.parse import urlencode

    body = fields if isinstance(fields, str) else urlencode(fields)
    content_type = headers.pop("content_type", "application/x-www-form-urlencoded")
    browser = Browser(enforce_csrf_checks=True)
    return browser.post(path, data=body.encode(), content_type=content_type, headers=headers)


def make_service(cast: Cast, **changes: Any) -> Service:
    """A service client, by default of the first organization."""
    owner = cast.user("other_owner" if changes.get("organization") == cast.other_org else "owner")
    wanted = {"actor": owner, "organization": cast.org, "name": "build bot", **changes}
    created = create_service_client(**wanted)
    return Service(created.client, created.client_secret)


@pytest.fixture
def service(cast: Cast) -> Service:
    """See Service."""
    return make_service(cast)


@pytest.fixture
def vendor(db: None) -> str:
    """The slug of a vendor in the catalog."""
    load_vendor("https://vendor.example/mcp", slug="acme")
    return "acme"


@pytest.fixture
def public_client(db: None) -> Client:
    """A public client, as registration makes them."""
    return Client.objects.create(
        client_id="mcpc_public",
        client_secret="",
        client_type=Client.CLIENT_PUBLIC,
        authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
        redirect_uris="http://127.0.0.1/callback",
        name="Some agent",
    )

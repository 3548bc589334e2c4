"""The claims of minted tokens, with a key that the environment brings."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
from pytest_django.fixtures import Settings

from gateway.lib import clock
from oauth_ext.jwt import key_material, keys, mint
from oauth_ext.jwt.verify import verify

ORG, PERSON = uuid.uuid4(), uuid.uuid4()


@pytest.fixture(autouse=True)
def pair(settings: Settings) -> Iterator[key_material.SigningPair]:
    """A signing key from TOKEN_SIGNING_KEYS, so that no database is asked."""
    made = key_material.generate(datetime(2026, 11, 21, tzinfo=UTC))
    settings.TOKEN_SIGNING_KEYS = key_material.to_setting([made])
    keys.forget()
    yield made
    keys.forget()


def request(**changes: Any) -> SimpleNamespace:
    client = SimpleNamespace(client_id="svc_a", is_service_client=True, subject=f"svc:{ORG}:svc_a")
    values = {"client": client, "user": None, "organization_id": ORG, "scopes": ["mcp:a", "mcp:b"], "resource": []}
    return SimpleNamespace(**{**values, **changes})


def test_a_service_client(pair: key_material.SigningPair) -> None:
    token = mint.access_token(request())
    assert jwt.get_unverified_header(token) == {"typ": "at+jwt", "alg": "ES256", "kid": pair.kid}
    found = jwt.decode(token, jwt.PyJWK(pair.public_jwk()), algorithms=["ES256"], audience="http://testserver/v1/mcp")
    assert (found["exp"] - found["iat"], abs(found["iat"] - clock.now().timestamp()) < 5) == (3600, True)
    assert found["sub"] == f"svc:{ORG}:svc_a"
    assert found["aud"] == "http://testserver/v1/mcp"
    assert (found["iss"], found["client_id"], found["scope"]) == ("http://testserver", "svc_a", "mcp:a mcp:b")
    assert found["org_id"] == str(ORG)


def test_a_person_and_several_resources() -> None:
    resources = ["http://testserver/v1/a/mcp", "http://testserver/v1/b/mcp"]
    token = mint.access_token(request(user=SimpleNamespace(pk=PERSON), resource=resources))
    found = verify(token, keys.load_key_set(), now=clock.now())
    assert (found.subject, found.audiences) == (str(PERSON), tuple(resources))
    assert found.expires_at - found.issued_at == timedelta(hours=1)


def test_no_two_tokens_are_alike() -> None:
    assert mint.access_token(request()) != mint.access_token(request())
    assert mint.refresh_token(request()) != mint.refresh_token(request(), refresh_token=False)
    assert len(mint.refresh_token(request())) == 43


def test_a_token_that_nobody_would_accept_is_not_minted() -> None:
    with pytest.raises(ValueError, match="organization"):
        mint.access_token(request(organization_id=None))
    public = SimpleNamespace(client_id="mcpc_a", is_service_client=False, subject="svc:None:mcpc_a")
    with pytest.raises(ValueError, match="person"):
        mint.access_token(request(client=public))

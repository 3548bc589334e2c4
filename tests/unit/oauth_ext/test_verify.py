"""Access tokens: what we mint is accepted, everything else is refused."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from oauth_ext.jwt import key_material
from oauth_ext.jwt.verify import Claims, InvalidToken, UnknownKey, verify

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
NOW_S = int(NOW.timestamp())
BASE = "http://testserver"
ORG = uuid.UUID("0b5c1d2e-3f4a-4b6c-8d7e-9fa0b1c2d3e4")
PAIR = key_material.SigningPair("test-key", key_material.generate(NOW).private_key)
KEYS = key_material.key_set(PAIR, [PAIR])


def claims(**changes: Any) -> dict[str, Any]:
    """A good payload; a change to None leaves the claim out."""
    good = {
        "iss": BASE,
        "sub": f"svc:{ORG}:svc_a",
        "aud": f"{BASE}/v1/mcp",
        "client_id": "svc_a",
        "scope": "mcp:all",
        "org_id": str(ORG),
        "jti": "j1",
        "iat": NOW_S,
        "exp": NOW_S + 3600,
    }
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def signed(payload: dict[str, Any], **headers: Any) -> str:
    """The payload signed with our key; headers may be overridden, None leaves one out."""
    wanted = {"typ": "at+jwt", "alg": "ES256", "kid": PAIR.kid, **headers}
    segments = [segment({name: value for name, value in wanted.items() if value is not None}), segment(payload)]
    der_to_raw = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256, ec.SECP256R1)
    signature = der_to_raw.sign(".".join(segments).encode(), PAIR.private_key)
    return ".".join([*segments, encode(signature)])


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def segment(part: object) -> str:
    return encode(json.dumps(part).encode())


def reason_of(token: str, *, now: datetime = NOW) -> str:
    with pytest.raises(InvalidToken) as refusal:
        verify(token, KEYS, now=now)
    assert len(token) < 4 or token not in str(refusal.value)
    return refusal.value.reason


def test_a_good_token() -> None:
    assert verify(signed(claims()), KEYS, now=NOW) == Claims(
        subject=f"svc:{ORG}:svc_a",
        org_id=ORG,
        client_id="svc_a",
        scopes=frozenset({"mcp:all"}),
        audiences=(f"{BASE}/v1/mcp",),
        token_id="j1",
        issued_at=NOW,
        expires_at=NOW + timedelta(hours=1),
    )


def test_only_our_audiences_are_kept() -> None:
    token = signed(claims(aud=["https://else.test", f"{BASE}/v1/acme/mcp", f"{BASE}/v1/mcp"]))
    assert verify(token, KEYS, now=NOW).audiences == (f"{BASE}/v1/acme/mcp", f"{BASE}/v1/mcp")


@pytest.mark.parametrize("changes", [{"iat": NOW_S + 30}, {"nbf": NOW_S + 30}, {"exp": NOW_S + 1}])
def test_times_just_inside_are_accepted(changes: dict[str, Any]) -> None:
    assert verify(signed(claims(**changes)), KEYS, now=NOW).subject.startswith("svc:")


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": NOW_S},
        {"exp": NOW_S - 1},
        {"iat": NOW_S + 31},
        {"nbf": NOW_S + 300},
        {"exp": None},
        {"iat": None},
        {"exp": str(NOW_S + 60)},
        {"exp": True},
        {"exp": 10**18},
        {"nbf": "soon"},
        {"iss": "https://evil.test"},
        {"iss": f"{BASE}/"},
        {"iss": None},
        {"aud": None},
        {"aud": "https://else.test/v1/mcp"},
        {"aud": f"{BASE}/v1/mcp/"},
        {"aud": BASE},
        {"aud": f"{BASE}.evil.test/v1/mcp"},
        {"aud": []},
        {"aud": [1, {"a": 2}]},
        {"aud": {"a": f"{BASE}/v1/mcp"}},
        {"org_id": None},
        {"org_id": ""},
        {"org_id": "acme"},
        {"org_id": str(ORG).upper()},
        {"org_id": 7},
        {"sub": None},
        {"sub": ""},
        {"sub": 5},
        {"client_id": None},
        {"scope": None},
        {"jti": None},
    ],
    ids=str,
)
def test_claims_that_are_refused(changes: dict[str, Any]) -> None:
    assert reason_of(signed(claims(**changes)))


@pytest.mark.parametrize(
    "headers",
    [
        {"typ": "JWT"},
        {"typ": "application/at+jwt"},
        {"typ": None},
        {"alg": "none"},
        {"alg": "HS256"},
        {"alg": "ES384"},
        {"alg": None},
        {"kid": None},
        {"kid": 7},
        {"crit": ["exp"]},
        {"crit": ["b64"], "b64": False},
        {"b64": True},
        {"jku": "https://evil.test/jwks.json"},
        {"jwk": PAIR.public_jwk()},
        {"x5u": "https://evil.test/cert"},
        {"cty": "JWT"},
    ],
    ids=lambda headers: (
        " ".join(f"{name}={str(value)[:8]}" for name, value in headers.items() if name != "jwk") or "jwk"
    ),
)
def test_headers_that_are_refused_even_when_signed(headers: dict[str, Any]) -> None:
    assert reason_of(signed(claims(), **headers))


@pytest.mark.parametrize("kid", ["../../etc/passwd", "", f"{PAIR.kid} ", "' OR 1=1 --", "x" * 5000])
def test_an_unknown_key_is_told_apart(kid: str) -> None:
    with pytest.raises(UnknownKey):
        verify(signed(claims(), kid=kid), KEYS, now=NOW)


def unsigned() -> str:
    return f"{segment({'typ': 'at+jwt', 'alg': 'none', 'kid': PAIR.kid})}.{segment(claims())}."


def signed_with_the_public_key_as_a_shared_secret() -> str:
    public_key = PAIR.private_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    text = f"{segment({'typ': 'at+jwt', 'alg': 'HS256', 'kid': PAIR.kid})}.{segment(claims())}"
    return f"{text}.{encode(hmac.new(public_key, text.encode(), hashlib.sha256).digest())}"


def signed_by_another_key_under_our_kid() -> str:
    headers = {"typ": "at+jwt", "kid": PAIR.kid}
    return jwt.encode(claims(), ec.generate_private_key(ec.SECP256R1()), algorithm="ES256", headers=headers)


def with_a_zero_signature() -> str:
    return f"{signed(claims()).rpartition('.')[0]}.{encode(bytes(64))}"


def with_another_payload() -> str:
    header, _, signature = signed(claims()).split(".")
    return f"{header}.{segment(claims(org_id=str(uuid.uuid4())))}.{signature}"


def with_a_payload_that_is_no_object() -> str:
    return signed([1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "forge",
    [
        unsigned,
        signed_with_the_public_key_as_a_shared_secret,
        signed_by_another_key_under_our_kid,
        with_a_zero_signature,
        with_another_payload,
        with_a_payload_that_is_no_object,
    ],
)
def test_forgeries(forge: Callable[[], str]) -> None:
    assert reason_of(forge())


@pytest.mark.parametrize(
    "token", ["", ".", "..", "a.b", "a.b.c.d", "sk-123", "é.é.é", "\ud800.a.b", "eyJ.eyJ.x", f"{'[' * 9000}.a.b"]
)
def test_what_is_no_token(token: str) -> None:
    assert reason_of(token) == "The access token is malformed."


def test_a_header_nested_without_end_is_malformed() -> None:
    header = encode(b'{"alg":' + b"[" * 100_000)
    assert reason_of(f"{header}.e30.e30") == "The access token is malformed."

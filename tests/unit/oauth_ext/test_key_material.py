"""Keys in their stored, configured and public forms."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from oauth_ext.jwt import key_material

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def test_a_setting_is_read_as_it_was_written() -> None:
    pairs = (key_material.generate(NOW), key_material.generate(NOW))
    read = key_material.parse_setting(f" {key_material.to_setting(pairs)} , ")
    assert [pair.kid for pair in read] == [pair.kid for pair in pairs]
    assert [pair.public_jwk() for pair in read] == [pair.public_jwk() for pair in pairs]
    assert pairs[0].kid.startswith("20261121-")


def test_the_public_form_verifies_what_the_private_form_signs() -> None:
    pair = key_material.generate(NOW)
    token = jwt.encode({"a": 1}, pair.private_key, algorithm="ES256")
    assert jwt.decode(token, jwt.PyJWK(pair.public_jwk()), algorithms=["ES256"]) == {"a": 1}
    assert "d" not in pair.public_jwk()


def test_a_key_set_publishes_all_and_signs_with_one() -> None:
    old, new = key_material.generate(NOW), key_material.generate(NOW)
    keys = key_material.key_set(old, [new, old])
    assert keys.signer is old
    assert set(keys.verifiers) == {old.kid, new.kid}
    assert keys.public_jwks["keys"] == [new.public_jwk(), old.public_jwk()]


def _entry(private_key: object) -> str:
    der = private_key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())  # type: ignore[attr-defined]
    return base64.b64encode(der).decode()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "at least one"),
        ("nocolon", "kid:base64"),
        ("../../etc:AAAA", "kid:base64"),
        ("a b:AAAA", "kid:base64"),
        ("k:???", "not base64"),
        ("k:AAAA", "not a PKCS8 private key"),
        (f"k:{_entry(ec.generate_private_key(ec.SECP384R1()))}", "must be a P-256 key"),
        (f"k:{_entry(ed25519.Ed25519PrivateKey.generate())}", "must be a P-256 key"),
        (f"k:{_entry(rsa.generate_private_key(65537, 2048))}", "must be a P-256 key"),
    ],
    ids=["empty", "no colon", "path", "space", "not base64", "not a key", "P-384", "Ed25519", "RSA"],
)
def test_a_bad_setting_is_named_without_the_key(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refusal:
        key_material.parse_setting(text)
    if ":" in text and len(text) > 20:
        assert text.partition(":")[2] not in str(refusal.value)


def test_a_kid_given_twice_is_refused() -> None:
    pair = key_material.generate(NOW)
    with pytest.raises(ValueError, match="appears twice"):
        key_material.parse_setting(key_material.to_setting([pair, pair]))


def test_no_private_key_in_repr() -> None:
    pair = key_material.generate(NOW)
    shown = f"{pair!r} {pair} {key_material.key_set(pair, [pair])!r}"
    assert "private" not in shown.lower()
    assert str(pair.private_key.private_numbers().private_value) not in shown

"""The demo identity provider's signing key on disk."""

from __future__ import annotations

from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from demo.identity_keys import KEY_FILE, load_signing_key
from demo.listening import StartError


def test_key_survives_a_restart_and_is_its_owners_alone(tmp_path: Path) -> None:
    directory = tmp_path / "keys"
    first, second = load_signing_key(directory), load_signing_key(directory)
    assert first.public_jwk() == second.public_jwk()
    assert (directory / KEY_FILE).stat().st_mode & 0o077 == 0
    assert [entry.name for entry in directory.iterdir()] == [KEY_FILE]
    token = first.sign({"sub": "a"})
    assert jwt.get_unverified_header(token) == {"alg": "RS256", "typ": "JWT", "kid": second.kid}
    assert jwt.decode(token, second.private.public_key(), algorithms=["RS256"]) == {"sub": "a"}
    assert load_signing_key(tmp_path / "others").kid != first.kid


def test_key_does_not_show_itself(tmp_path: Path) -> None:
    key = load_signing_key(tmp_path)
    assert repr(key) == f"SigningKey(kid={key.kid!r})"


def test_unusable_file_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / KEY_FILE
    path.write_text("not a key")
    with pytest.raises(StartError, match="cannot be used as the signing key"):
        load_signing_key(tmp_path)
    path.write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    with pytest.raises(StartError, match="not an RSA key"):
        load_signing_key(tmp_path)

"""Entries of CREDENTIAL_KEYS: keys as they are beside wrapped ones, and every half-made entry refused by its name."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass

import pytest

from gateway.keys.wrapping import WrappingError, open_keyring, services_of_entries, wrapped_by

pytestmark = pytest.mark.one_back_end
FIRST, SECOND = os.urandom(32), os.urandom(32)


@dataclass(frozen=True)
class Service:
    key: bytes

    def wrap(self, key_id: str, key: bytes) -> str:
        raise NotImplementedError

    def unwrap(self, key_id: str, wrapped: str) -> bytes:
        return self.key


def plain(key: bytes) -> str:
    return base64.b64encode(key).decode()


def test_wrapped_keys_beside_keys_as_they_are() -> None:
    text = f"2027:vault:v1:abc, 2026:{plain(SECOND)}"
    ring = open_keyring(text, {"vault": Service(FIRST)})
    assert (ring.current_id, dict(ring.keys)) == ("2027", {"2027": FIRST, "2026": SECOND})
    assert services_of_entries(text) == {"2027": "vault", "2026": ""}


def test_an_entry_names_its_service() -> None:
    assert [wrapped_by(value) for value in ("vault:v1:a", "aws-kms:a", plain(FIRST))] == ["vault", "aws-kms", ""]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("2027:vault:v1:abc", "key 2027 is wrapped by vault, and VAULT_TRANSIT_KEY is not set"),
        ("2027:aws-kms:abc", "key 2027 is wrapped by aws-kms, and AWS_KMS_KEY_ID is not set"),
        ("2027:gcp-kms:abc", "key 2027 is wrapped by something other than vault or aws-kms"),
    ],
)
def test_a_service_that_is_not_there(entry: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        open_keyring(entry, {})


def test_what_a_service_opens_must_be_a_key_and_not_the_same_twice() -> None:
    with pytest.raises(WrappingError, match="no key of 32 bytes"):
        open_keyring("2027:vault:v1:abc", {"vault": Service(b"short")})
    with pytest.raises(ValueError, match="2027 and 2026 are the same key"):
        open_keyring(f"2027:vault:v1:abc,2026:{plain(FIRST)}", {"vault": Service(FIRST)})

"""Sealing opens for its own key, row and wrapping key only; keyrings refuse what would only look safe."""

from __future__ import annotations

import base64
import os

import pytest

from gateway.lib.crypto import (
    KEY_BYTES,
    NONCE_BYTES,
    TAG_BYTES,
    CryptoError,
    Keyring,
    UnknownKey,
    open_sealed,
    seal,
)

KEY = os.urandom(KEY_BYTES)
AAD = b"cred|org|acme|team|row|1"


def entry(key_id: str, key: bytes) -> str:
    return f"{key_id}:{base64.b64encode(key).decode()}"


def keyring(*ids: str) -> Keyring:
    return Keyring(current_id=ids[0], keys={key_id: os.urandom(KEY_BYTES) for key_id in ids})


@pytest.mark.parametrize("plaintext", [b"", b"x", b"\x00" * 40, bytes(range(256)) * 32])
def test_what_was_sealed_opens_again(plaintext: bytes) -> None:
    sealed = seal(KEY, plaintext, AAD)
    assert open_sealed(KEY, sealed, AAD) == plaintext
    assert len(sealed) == 1 + NONCE_BYTES + len(plaintext) + TAG_BYTES


def test_the_same_text_never_seals_to_the_same_bytes() -> None:
    assert len({seal(KEY, b"same", AAD) for _ in range(100)}) == 100


def test_another_key_does_not_open() -> None:
    with pytest.raises(CryptoError):
        open_sealed(os.urandom(KEY_BYTES), seal(KEY, b"secret", AAD), AAD)


@pytest.mark.parametrize("aad", [b"", AAD + b"|", AAD[:-1], b"cred|org|acme|team|row|2"])
def test_another_row_does_not_open(aad: bytes) -> None:
    with pytest.raises(CryptoError):
        open_sealed(KEY, seal(KEY, b"secret", AAD), aad)


def test_no_byte_can_be_changed() -> None:
    sealed = seal(KEY, b"secret", AAD)
    for position in range(len(sealed)):
        altered = bytearray(sealed)
        altered[position] ^= 1
        with pytest.raises(CryptoError):
            open_sealed(KEY, bytes(altered), AAD)


def test_no_shorter_and_no_longer_version_opens() -> None:
    sealed = seal(KEY, b"secret", AAD)
    for end in range(len(sealed)):
        with pytest.raises(CryptoError):
            open_sealed(KEY, sealed[:end], AAD)
    with pytest.raises(CryptoError):
        open_sealed(KEY, sealed + b"\x00", AAD)


@pytest.mark.parametrize("length", [0, 16, 24, 31, 33])
def test_only_256_bit_keys_seal_or_open(length: int) -> None:
    key = os.urandom(length)
    with pytest.raises(CryptoError):
        seal(key, b"secret", AAD)
    with pytest.raises(CryptoError):
        open_sealed(key, seal(KEY, b"secret", AAD), AAD)


def test_errors_carry_neither_key_nor_text() -> None:
    sealed = seal(KEY, b"the-plain-text", AAD)
    with pytest.raises(CryptoError) as caught:
        open_sealed(KEY, sealed, b"other")
    assert "the-plain-text" not in repr(caught.value)
    assert KEY.hex() not in repr(caught.value)


def test_a_wrapped_key_opens_under_every_configured_key() -> None:
    old = keyring("2025")
    wrapped = old.wrap(KEY, b"dek|org|1")
    both = Keyring(current_id="2026", keys={"2026": os.urandom(KEY_BYTES), **old.keys})
    assert both.unwrap("2025", wrapped, b"dek|org|1") == KEY


def test_a_wrapped_key_opens_for_its_own_row_only() -> None:
    ring = keyring("a", "b")
    wrapped = ring.wrap(KEY, b"dek|org|1")
    with pytest.raises(CryptoError):
        ring.unwrap("a", wrapped, b"dek|other|1")
    with pytest.raises(CryptoError):
        ring.unwrap("b", wrapped, b"dek|org|1")


def test_a_relabelled_wrapping_does_not_open_even_under_the_same_bytes() -> None:
    one = keyring("a")
    renamed = Keyring(current_id="b", keys={"b": one.keys["a"]})
    with pytest.raises(CryptoError):
        renamed.unwrap("b", one.wrap(KEY, b"x"), b"x")


def test_another_key_of_the_ring_may_encrypt() -> None:
    ring = keyring("new", "old")
    with_old = ring.sealing_with("old")
    assert ring.unwrap("old", with_old.wrap(b"k" * 32, b"aad"), b"aad") == b"k" * 32
    assert (with_old.current_id, with_old.keys, ring.current_id) == ("old", ring.keys, "new")


def test_a_key_that_is_not_configured_is_distinguished() -> None:
    with pytest.raises(UnknownKey, match="gone"):
        keyring("a").unwrap("gone", b"", b"")


def test_parse_takes_the_first_as_current() -> None:
    first, second = os.urandom(32), os.urandom(32)
    ring = Keyring.parse(f" {entry('2026b', first)} , {entry('2026-a', second)},")
    assert ring.current_id == "2026b"
    assert dict(ring.keys) == {"2026b": first, "2026-a": second}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at least one"),
        (" , ", "at least one"),
        ("nocolon", "id:base64"),
        (":" + base64.b64encode(bytes(range(32))).decode(), "id:base64"),
        ("--:" + base64.b64encode(bytes(range(32))).decode(), "id:base64"),
        ("ä:" + base64.b64encode(bytes(range(32))).decode(), "id:base64"),
        ("a" * 65 + ":" + base64.b64encode(bytes(range(32))).decode(), "64 characters"),
        ("a:!!!!", "key a is not base64"),
        ("a:ÄÖÜ=", "key a is not base64"),
        ("a:" + base64.b64encode(bytes(range(31))).decode(), "key a must be 32"),
        ("a:" + base64.b64encode(bytes(32)).decode(), "key a must be 32"),
    ],
)
def test_parse_refuses_and_names_the_entry(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Keyring.parse(text)


def test_parse_refuses_an_id_and_a_key_given_twice() -> None:
    key = os.urandom(32)
    with pytest.raises(ValueError, match="id a appears twice"):
        Keyring.parse(f"{entry('a', key)},{entry('a', os.urandom(32))}")
    with pytest.raises(ValueError, match="a and b are the same key"):
        Keyring.parse(f"{entry('a', key)},{entry('b', key)}")


def test_parse_never_repeats_the_key() -> None:
    encoded = base64.b64encode(os.urandom(31)).decode()
    with pytest.raises(ValueError, match="random bytes") as caught:
        Keyring.parse(f"a:{encoded}")
    assert encoded not in str(caught.value)


def test_a_keyring_shows_ids_only_and_cannot_be_changed() -> None:
    key = os.urandom(32)
    ring = Keyring.parse(entry("a", key))
    assert repr(ring) == str(ring) == "Keyring(current_id='a', ids=['a'])"
    with pytest.raises(TypeError):
        ring.keys["b"] = key  # type: ignore[index]

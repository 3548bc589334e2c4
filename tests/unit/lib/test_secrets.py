"""Minted secrets hold the entropy their hash relies on."""

from __future__ import annotations

import hashlib
import math
import string

import pytest

from gateway.lib import secrets


def test_base62_has_the_length_asked_for_and_nothing_to_escape() -> None:
    minted = secrets.random_base62(43)
    assert len(minted) == 43
    assert set(minted) <= set(string.ascii_letters + string.digits)


def test_43_base62_characters_hold_256_bits() -> None:
    assert len(set(secrets.BASE62)) == 62
    assert 43 * math.log2(len(secrets.BASE62)) >= 256


def test_every_character_of_the_alphabet_is_used() -> None:
    assert set(secrets.random_base62(20_000)) == set(secrets.BASE62)


def test_url_safe_secrets_are_43_characters() -> None:
    minted = secrets.random_url_safe()
    assert len(minted) == 43
    assert set(minted) <= set(string.ascii_letters + string.digits + "-_")


@pytest.mark.parametrize("mint", [secrets.random_url_safe, lambda: secrets.random_base62(43)])
def test_no_secret_is_minted_twice(mint: object) -> None:
    assert callable(mint)
    assert len({mint() for _ in range(1_000)}) == 1_000


def test_the_digest_is_plain_sha256() -> None:
    assert secrets.sha256("cak_ä") == hashlib.sha256("cak_ä".encode()).digest()


def test_a_lone_surrogate_is_hashed_rather_than_a_crash() -> None:
    assert secrets.sha256("\ud800") != secrets.sha256("")
    assert len(secrets.sha256("\ud800")) == 32


@pytest.mark.parametrize(("right", "same"), [(b"abc", True), (b"abd", False), (b"ab", False), (b"", False)])
def test_equal(right: bytes, same: bool) -> None:
    assert secrets.equal(b"abc", right) is same

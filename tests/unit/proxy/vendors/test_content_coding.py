"""Gzip undone piece by piece: what a proper vendor sends, and what is made to unpack without end."""

from __future__ import annotations

import gzip
import random

import pytest

from proxy.vendors.content_coding import PLAIN_BYTES, BadCoding, Gunzip, TooLarge

MIB = 1024 * 1024


def text(size: int) -> bytes:
    """Words in no order: it packs as text does."""
    words = random.Random(7).choices([b"device", b"site", b"offline", b"00042", b'{"name":', b"},"], k=size // 6)
    return b" ".join(words)[:size]


@pytest.mark.parametrize("cut", [1_000, 4_096, 100_000])
def test_what_was_packed_comes_out_however_it_is_cut(cut: int) -> None:
    plain = text(3 * MIB)
    packed = gzip.compress(plain)
    unpacked = Gunzip()
    found = b"".join(unpacked.feed(packed[start : start + cut], 10 * MIB) for start in range(0, len(packed), cut))
    assert found == plain
    assert unpacked.is_complete


def test_a_small_answer_may_be_as_dull_as_it_likes() -> None:
    plain = b"x" * PLAIN_BYTES
    assert Gunzip().feed(gzip.compress(plain), 10 * MIB) == plain


def test_a_bomb_ends_early() -> None:
    unpacked = Gunzip()
    with pytest.raises(TooLarge):
        unpacked.feed(gzip.compress(b"x" * 64 * MIB), 10 * MIB)
    assert unpacked._unpacked_bytes <= PLAIN_BYTES


@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_there_is_never_more_than_room_for(size: int) -> None:
    packed = gzip.compress(text(100_000 + 1))
    with pytest.raises(TooLarge):
        Gunzip().feed(packed, size)


@pytest.mark.parametrize(
    "packed",
    [b"nothing like it", gzip.compress(b"a") + b"b", gzip.compress(text(50_000)) * 2],
    ids=["plain", "trailing byte", "two members"],  # what gzip makes holds the time of day
)
def test_what_is_not_one_member(packed: bytes) -> None:
    with pytest.raises(BadCoding):
        Gunzip().feed(packed, 10 * MIB)

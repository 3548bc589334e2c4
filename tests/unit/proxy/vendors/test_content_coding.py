"""Gzip undone piece by piece: what a proper vendor sends, and what is made to unpack without end."""

from __future__ import annotations

import gzip
import math
import random
from collections.abc import Callable

import pytest

from proxy.vendors.content_coding import PIECE_BYTES, STEP_BYTES, BadCoding, Gunzip

MIB = 1024 * 1024


def text(size: int) -> bytes:
    """Words in no order: it packs as text does."""
    words = random.Random(7).choices([b"device", b"site", b"offline", b"00042", b'{"name":', b"},"], k=size // 6)
    return b" ".join(words)[:size]


@pytest.mark.parametrize("cut", [1_000, 4_096, 100_000])
@pytest.mark.parametrize("size", [3 * MIB, 0])
@pytest.mark.parametrize("make", [text, lambda size: b"x" * size], ids=["text", "all the same"])
def test_what_was_packed_comes_out_however_it_is_cut(make: Callable[[int], bytes], size: int, cut: int) -> None:
    plain = make(size)
    packed = gzip.compress(plain)
    unpacked = Gunzip()
    found = [piece for start in range(0, len(packed), cut) for piece in unpacked.pieces(packed[start : start + cut])]
    assert b"".join(found) == plain
    assert all(len(piece) <= PIECE_BYTES for piece in found)
    assert unpacked.is_complete


@pytest.mark.parametrize("size", [PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES])
def test_pieces_that_are_just_full_lose_nothing(size: int) -> None:
    unpacked = Gunzip()
    assert b"".join(unpacked.pieces(gzip.compress(b"x" * size))) == b"x" * size
    assert unpacked.is_complete


def test_a_bomb_goes_off_no_further_than_it_is_asked_to() -> None:
    unpacked = Gunzip()
    pieces = unpacked.pieces(gzip.compress(b"x" * 64 * MIB))
    assert next(pieces) == b"x" * PIECE_BYTES
    assert len(unpacked._inflate.unconsumed_tail) > STEP_BYTES - PIECE_BYTES / 500


def test_what_adds_nothing_is_read_a_little_at_a_time() -> None:
    """Empty blocks cost time and bring nothing, so that no room would ever be used up."""
    unpacked = Gunzip()
    empty_blocks = gzip.compress(b"")[:10] + b"\x00\x00\x00\xff\xff" * 100_000
    found = list(unpacked.pieces(empty_blocks))
    assert set(found) == {b""}
    assert len(found) == math.ceil(len(empty_blocks) / STEP_BYTES)


def test_half_of_it_is_not_complete() -> None:
    unpacked = Gunzip()
    assert unpacked.is_complete, "a body without a byte"
    list(unpacked.pieces(gzip.compress(b"whole")[:-1]))
    assert not unpacked.is_complete


@pytest.mark.parametrize(
    "packed",
    [b"nothing like it", gzip.compress(b"a") + b"b", gzip.compress(text(50_000)) * 2],
    ids=["plain", "trailing byte", "two members"],  # gzip's output holds the time of day
)
def test_what_is_not_one_member(packed: bytes) -> None:
    with pytest.raises(BadCoding):
        list(Gunzip().pieces(packed))

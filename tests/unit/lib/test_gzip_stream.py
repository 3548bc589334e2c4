"""Gzip of a streamed body: the clients that get it, and parts that can be read when they come."""

from __future__ import annotations

import gzip
import zlib

import pytest

from gateway.lib.gzip_stream import accepts_gzip, gzip_parts

YES = ["gzip", "br, gzip", "GZIP;q=0.001", "deflate, gzip;q=1.0, *;q=0.5", "*", "br;q=1.0, *;q=0.1", "x-gzip"]
NO = ["", "identity", "br", "gzip;q=0", "gzip;q=0.0", "gzip; q = 0.000", "*;q=0", "*, gzip;q=0", "gzipped"]


@pytest.mark.parametrize("header", YES)
def test_clients_that_accept_it(header: str) -> None:
    assert accepts_gzip(header)


@pytest.mark.parametrize("header", NO)
def test_clients_that_do_not(header: str) -> None:
    assert not accepts_gzip(header)


def test_each_part_can_be_read_when_it_comes() -> None:
    parts = [b"header\r\n", b"row\r\n" * 1_000, b"", b"end"]
    packed = list(gzip_parts(iter(parts)))
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    assert [unpacker.decompress(part) for part in packed] == [*parts, b""]
    assert gzip.decompress(b"".join(packed)) == b"".join(parts)
    assert gzip.decompress(b"".join(gzip_parts(iter(())))) == b""

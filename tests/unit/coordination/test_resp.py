"""The wire format of Redis: written requests, read replies, and refused ones."""

from __future__ import annotations

import pytest

from gateway.coordination import resp
from gateway.coordination.resp import BadReply, ErrorReply


def test_a_command_counts_bytes_and_not_characters() -> None:
    assert resp.command("SET", "clé", 7) == "*3\r\n$3\r\nSET\r\n$4\r\nclé\r\n$1\r\n7\r\n".encode()
    assert resp.command("PING\r\nFLUSHALL") == b"*1\r\n$14\r\nPING\r\nFLUSHALL\r\n"


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        (b"+OK\r\n", b"OK"),
        (b":-12\r\n", -12),
        (b"$5\r\na\r\nbc\r\n", b"a\r\nbc"),
        (b"$0\r\n\r\n", b""),
        (b"$-1\r\n", None),
        (b"*-1\r\n", None),
        (b"*0\r\n", []),
        (b"*3\r\n:1\r\n$-1\r\n*1\r\n$1\r\nx\r\n", [1, None, [b"x"]]),
    ],
)
def test_a_reply_is_read_whole_or_not_at_all(reply: bytes, value: object) -> None:
    reader = resp.reader()
    for position in range(len(reply)):
        assert reader.gets() is False
        reader.feed(reply[position : position + 1])
    assert reader.gets() == value
    reader.feed(reply + b":1\r\n")
    assert [reader.gets(), reader.gets(), reader.gets()] == [value, 1, False]


@pytest.mark.parametrize("before", [b"", b"*2\r\n:1\r\n"])
def test_an_error_is_a_value_that_quotes_nothing(before: bytes) -> None:
    reader = resp.reader()
    reader.feed(before + b"-NOSCRIPT No matching script: secret\r\n")
    found = reader.gets()
    reply = found[-1] if isinstance(found, list) else found
    assert isinstance(reply, ErrorReply)
    assert reply.code == "NOSCRIPT"
    assert "secret" not in repr(reply)


@pytest.mark.parametrize("reply", [b"HTTP/1.1 400\r\n", b"$x\r\n", b"*one\r\n", b":\r\n", b"\r\n"])
def test_what_is_no_reply_is_refused(reply: bytes) -> None:
    reader = resp.reader()
    reader.feed(reply)
    with pytest.raises(BadReply):
        reader.gets()

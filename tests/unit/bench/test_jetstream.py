from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from msgspec.structs import replace

from bench.jetstream import Inbox, JetStreamConnection, JetStreamFailed, message
from tests.unit.audit.test_call_record import make_record


def test_a_message_says_its_sizes_and_its_id() -> None:
    assert message("calls", "in.1", b"row") == b"PUB calls in.1 3\r\nrow\r\n"
    head = b"NATS/1.0\r\nNats-Msg-Id: a\r\n\r\n"
    assert message("calls", "in.1", b"row", "a") == b"HPUB calls in.1 28 31\r\n" + head + b"row\r\n"
    assert len(head) == 28


SENT = b'INFO {}\r\nMSG in.1 1 4\r\n{"a"\r\nPING\r\nMSG in.2 1 other 2\r\n{}\r\n'


@pytest.mark.parametrize("size", [1, 7, len(SENT)])
def test_an_inbox_finds_whole_messages_however_they_are_cut(size: int) -> None:
    inbox, found = Inbox(), []
    for at in range(0, len(SENT), size):
        found += list(inbox.feed(SENT[at : at + size]))
    assert found == [("in.1", b'{"a"'), ("in.2", b"{}")]
    assert inbox.pings == 1


def test_a_complaint_of_the_server_is_a_fault() -> None:
    with pytest.raises(JetStreamFailed, match="Unknown Protocol"):
        list(Inbox().feed(b"-ERR 'Unknown Protocol Operation'\r\n"))


@contextmanager
def server(answer: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A broker that gives each published message the same answer; the lines that it has read."""
    read: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            client = listener.accept()[0]
            with client, client.makefile("rwb") as stream:
                stream.write(b"INFO {}\r\n")
                for line in stream:
                    read.append(line)
                    if line.startswith((b"PUB ", b"HPUB ")):
                        stream.read(int(line.split()[-1]) + 2)
                        stream.write(b"MSG %b 1 %d\r\n%b\r\n" % (line.split()[2], len(answer), answer))
                        stream.flush()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1], read
        thread.join(10)


@pytest.mark.parametrize(("rows_per_message", "messages"), [(1, 3), (2, 2), (512, 1)])
def test_a_commit_returns_when_every_message_is_acknowledged(rows_per_message: int, messages: int) -> None:
    with (
        server(b'{"stream":"CALLS","seq":1}') as (port, read),
        closing(JetStreamConnection(port, rows_per_message=rows_per_message)) as connection,
    ):
        connection.commit([make_record() for _ in range(3)])
    assert sum(line.startswith(b"HPUB ") for line in read) == messages


def test_a_refused_message_fails_its_commit() -> None:
    refusal = json.dumps({"error": {"code": 503, "description": "insufficient storage"}}).encode()
    with (
        server(refusal) as (port, _),
        closing(JetStreamConnection(port)) as connection,
        pytest.raises(JetStreamFailed, match="insufficient storage"),
    ):
        connection.commit([make_record()])


def test_an_intent_and_its_outcome_are_two_messages() -> None:
    begun = make_record()
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as listener,
        closing(JetStreamConnection(listener.getsockname()[1])) as connection,
    ):
        for record in (begun, begun, replace(begun, status="success")):
            connection.start_commit([record])
        ids = [line for line in _sent(listener).split(b"\r\n") if line.startswith(b"Nats-Msg-Id")]
    assert len(ids) == 3
    assert ids[0] == ids[1] != ids[2]


def _sent(listener: socket.socket) -> bytes:
    client, sent = listener.accept()[0], b""
    with client:
        client.settimeout(10)
        while sent.count(b"Nats-Msg-Id") < 3:
            sent += client.recv(65_536)
    return sent

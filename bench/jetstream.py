"""Call records in a stream of NATS JetStream, behind the gateway's own door to an engine. For bench.spike_nats only.

The protocol is spoken by hand: one socket, headers for the id of a message, an acknowledgement for each message.
https://docs.nats.io/reference/reference-protocols/nats-protocol
"""

from __future__ import annotations

import json
import select
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from audit.call_record import UNKNOWN, CallRecord
from bench.processes import HOST

STREAM, SUBJECT = "CALLS", "calls"
TIMEOUT_S = 5.0
READ_BYTES = 262_144
READ_AT_ONCE = 256  # messages asked for before their answers are read


class JetStreamFailed(Exception):
    """The server refused a message, or ended the connection."""


def message(subject: str, reply: str, payload: bytes, message_id: str = "") -> bytes:
    """Pure: one published message. The server keeps one of several with the same id."""
    if not message_id:
        return b"PUB %b %b %d\r\n%b\r\n" % (subject.encode(), reply.encode(), len(payload), payload)
    headers = b"NATS/1.0\r\nNats-Msg-Id: %b\r\n\r\n" % message_id.encode()
    sizes = (len(headers), len(headers) + len(payload))
    return b"HPUB %b %b %d %d\r\n%b%b\r\n" % (subject.encode(), reply.encode(), *sizes, headers, payload)


class Inbox:
    """Pure: the messages in what the server sends."""

    def __init__(self) -> None:
        self._unread = b""
        self.pings = 0

    def feed(self, part: bytes) -> Iterator[tuple[str, bytes]]:
        """Yields (subject, payload) of each whole message. Raises: JetStreamFailed."""
        unread, at = self._unread + part, 0
        while (end := unread.find(b"\r\n", at)) >= 0:
            line, begin = unread[at:end], end + 2
            if line.startswith(b"MSG "):
                _, subject, *_, size = line.split()
                if len(unread) < begin + int(size) + 2:
                    break
                yield subject.decode(), unread[begin : begin + int(size)]
                begin += int(size) + 2
            elif line == b"PING":
                self.pings += 1
            elif line.startswith(b"-ERR"):
                raise JetStreamFailed(line.decode())
            at = begin
        self._unread = unread[at:]


class JetStreamConnection:
    """An AuditConnection and LoopConnection: `rows_per_message` records of a batch are one message."""

    gather_s = 0.0

    def __init__(self, port: int, *, rows_per_message: int = 1) -> None:
        """Raises: OSError, JetStreamFailed."""
        self._rows_per_message = rows_per_message
        self._inbox, self._prefix, self._unsent = Inbox(), f"_INBOX.{uuid.uuid4().hex}", b""
        self._waits_for: set[str] = set()
        self._sent = 0
        self._socket = socket.create_connection((HOST, port), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        options = json.dumps({"verbose": False, "pedantic": False, "headers": True})
        self._unsent = f"CONNECT {options}\r\nSUB {self._prefix}.* 1\r\n".encode()

    # --- AuditConnection ----------------------------------------------------------------------------------------------

    def commit(self, records: Sequence[CallRecord]) -> None:
        self.start_commit(records)
        while not self.poll_commit():
            self._wait()

    def probe(self) -> None:
        self.ask(f"$JS.API.STREAM.INFO.{STREAM}")

    def for_loop(self) -> JetStreamConnection:
        return self

    def close(self) -> None:
        self._socket.close()

    # --- LoopConnection -----------------------------------------------------------------------------------------------

    def fileno(self) -> int:
        return self._socket.fileno()

    def start_commit(self, records: Sequence[CallRecord]) -> bool:
        parts = [
            self._message(records[at : at + self._rows_per_message])
            for at in range(0, len(records), self._rows_per_message)
        ]
        self._unsent += b"".join(parts)
        return self.flush()

    def flush(self) -> bool:
        while self._unsent:
            try:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
            except BlockingIOError:
                return False
        return True

    def poll_commit(self) -> bool:
        for subject, payload in self._received():
            answer = json.loads(payload)
            if "error" in answer:
                raise JetStreamFailed(answer["error"].get("description", ""))
            self._waits_for.discard(subject)
        return not self._waits_for and self.flush()

    # --- the stream itself --------------------------------------------------------------------------------------------

    def make_stream(self) -> None:
        """A file on the server's disk; a message with the id of the last two minutes is kept once."""
        stream = {"name": STREAM, "subjects": [SUBJECT], "storage": "file", "num_replicas": 1}
        self.ask(f"$JS.API.STREAM.CREATE.{STREAM}", json.dumps(stream).encode())

    def last_sequence(self) -> int:
        return int(self.ask(f"$JS.API.STREAM.INFO.{STREAM}")["state"]["last_seq"])

    def stored(self) -> Iterator[dict[str, Any]]:
        """Every message of the stream: {"seq", "data" in base64, ...}."""
        last = self.last_sequence()
        for start in range(1, last + 1, READ_AT_ONCE):
            asked = [json.dumps({"seq": seq}).encode() for seq in range(start, min(start + READ_AT_ONCE, last + 1))]
            for answer in self._ask(f"$JS.API.STREAM.MSG.GET.{STREAM}", asked):
                yield answer["message"]

    def ask(self, subject: str, payload: bytes = b"") -> dict[str, Any]:
        """Raises: JetStreamFailed, TimeoutError."""
        return self._ask(subject, [payload])[0]

    def _ask(self, subject: str, payloads: Sequence[bytes]) -> list[dict[str, Any]]:
        waits_for = [self._reply() for _ in payloads]
        self._unsent += b"".join(map(message, [subject] * len(payloads), waits_for, payloads))
        answers: dict[str, dict[str, Any]] = {}
        while len(answers) < len(payloads):
            self.flush()
            self._wait()
            answers |= {reply: json.loads(payload) for reply, payload in self._received()}
        for answer in answers.values():
            if "error" in answer:
                raise JetStreamFailed(answer["error"].get("description", ""))
        return [answers[reply] for reply in waits_for]

    def _message(self, records: Sequence[CallRecord]) -> bytes:
        reply = self._reply()
        self._waits_for.add(reply)
        # An outcome is another message than its intent: the reader of the stream lets it win.
        word = "intent" if records[0].status == UNKNOWN else "outcome"
        return message(SUBJECT, reply, msgspec.json.encode(records), f"{records[0].id}-{len(records)}-{word}")

    def _reply(self) -> str:
        self._sent += 1
        return f"{self._prefix}.{self._sent}"

    def _received(self) -> Iterator[tuple[str, bytes]]:
        try:
            part = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        if not part:
            raise JetStreamFailed("the server ended the connection")
        yield from self._inbox.feed(part)
        if self._inbox.pings:
            self._unsent += b"PONG\r\n" * self._inbox.pings
            self._inbox.pings = 0

    def _wait(self) -> None:
        """Raises: TimeoutError."""
        wants_to_send = [] if self.flush() else [self._socket]
        if not any(select.select([self._socket], wants_to_send, [], TIMEOUT_S)):
            raise TimeoutError("the server did not answer in time")


def wait_until_serving(port: int, *, timeout_s: float = 30.0) -> JetStreamConnection:
    """A connection to a server that may only just start. Raises: TimeoutError."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        try:
            opened = JetStreamConnection(port)
            opened.ask("$JS.API.INFO")
        except (OSError, JetStreamFailed):
            time.sleep(0.05)
        else:
            return opened
    raise TimeoutError("the server did not start in time")

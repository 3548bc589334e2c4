"""Calls one after the other, and the CPU time of another process."""

from __future__ import annotations

import os
import socketserver
import threading
from collections.abc import Iterator

import pytest

from bench.processes import HOST, BenchFailed
from bench.wide.one_by_one import OneByOne, ask_all, cpu_clock

RIGHT = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright"


class Server(socketserver.ThreadingTCPServer):
    """Answers each line with `reply`, byte by byte."""

    daemon_threads = True
    reply = RIGHT


class Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Server)
        while self.rfile.readline():
            for byte in self.server.reply:
                self.wfile.write(bytes([byte]))


@pytest.fixture
def server() -> Iterator[Server]:
    with Server((HOST, 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_each_call_has_the_time_until_the_next_one(server: Server) -> None:
    readings = iter([0, 2_000_000, 3_000_000])
    took_ms = ask_all(server.server_address[1], [(b"a\n", b"right"), (b"b\n", b"ight")], lambda: next(readings))
    assert took_ms == [2.0, 1.0]


@pytest.mark.parametrize(
    "reply",
    [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong", RIGHT.replace(b"200", b"500"), b"HTTP/1.1 200\r\n\r\n"],
)
def test_a_wrong_answer_ends_the_calls(server: Server, reply: bytes) -> None:
    server.reply = reply
    with pytest.raises(BenchFailed):
        ask_all(server.server_address[1], [(b"a\n", b"right")])


def test_an_answer_keeps_its_status(server: Server) -> None:
    server.reply = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"
    with OneByOne(server.server_address[1]) as connection:
        assert connection.ask(b"a\n").status == 401


def test_the_clock_goes_on_with_the_work_of_the_process() -> None:
    clock = cpu_clock(os.getpid())
    before = clock()
    assert sum(number * number for number in range(200_000)) > 0
    assert clock() > before

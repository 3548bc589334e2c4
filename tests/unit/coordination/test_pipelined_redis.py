"""The shared connection to Redis, against servers that answer late, wrongly, in pieces or not at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.coordination import resp
from gateway.coordination.busy_aware_timeout import MAX_RECHECKS
from gateway.coordination.pipelined_redis import PipelinedConnection, PipelinedRedis
from gateway.coordination.resp import ErrorReply

LONG_TIMEOUT_S = 20.0
PING = resp.command("PING")


class _Silent(asyncio.Transport):
    """Takes what is written; nothing ever comes."""

    def write(self, data: Any) -> None:
        return

    def abort(self) -> None:
        return


@dataclass
class Server:
    """Hands every command to `behave`, which writes what it likes."""

    behave: Callable[[list[bytes], asyncio.StreamWriter], Awaitable[None]]
    seen: list[list[bytes]] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while client := await reader.readline():
                parts = []
                for _ in range(int(client[1:])):
                    size = int((await reader.readline())[1:])
                    parts.append((await reader.readexactly(size + 2))[:-2])
                self.seen.append(parts)
                await self.behave(parts, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


async def echo(parts: list[bytes], writer: asyncio.StreamWriter) -> None:
    writer.write(b"$%d\r\n%b\r\n" % (len(parts[-1]), parts[-1]))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server(echo)
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    yield made
    listening.close()


def client_of(
    server: Server, *, timeout_s: float = LONG_TIMEOUT_S, address: str = "redis://127.0.0.1:{}"
) -> PipelinedRedis:
    return PipelinedRedis(address.format(server.port), timeout_s=timeout_s)


async def test_many_commands_share_one_connection_and_get_their_own_answers(server: Server) -> None:
    client = client_of(server)
    answers = await asyncio.gather(*(client.execute(resp.command("ECHO", number)) for number in range(200)))
    assert answers == [str(number).encode() for number in range(200)]
    assert server.connections == 1
    client.close()


async def test_what_was_alone_leaves_at_once_and_a_crowd_in_one_packet() -> None:
    packets: list[bytes] = []

    class Transport(asyncio.Transport):
        def write(self, data: Any) -> None:
            packets.append(data)

    connection = PipelinedConnection(asyncio.get_running_loop(), LONG_TIMEOUT_S)
    connection.connection_made(Transport())
    at_once = []
    for crowd in (1, 1, 3, 2, 1, 1):
        seen = len(packets)
        futures = [connection.send(PING) for _ in range(crowd)]
        at_once.append(len(packets) - seen)
        await asyncio.sleep(0)
        connection.data_received(b"+PONG\r\n" * crowd)
        await asyncio.gather(*futures)
    assert at_once == [0, 1, 1, 0, 0, 1]
    assert [len(packet) // len(PING) for packet in packets] == [1, 1, 1, 2, 2, 1, 1]


async def test_replies_may_come_in_pieces(server: Server) -> None:
    async def slowly(parts: list[bytes], writer: asyncio.StreamWriter) -> None:
        for byte in b"*2\r\n:1\r\n$4\r\n\r\n\r\n\r\n":
            writer.write(bytes([byte]))
            await asyncio.sleep(0)

    server.behave = slowly
    client = client_of(server)
    assert await asyncio.gather(client.execute(PING), client.execute(PING)) == [[1, b"\r\n\r\n"]] * 2
    client.close()


async def test_one_who_leaves_takes_nobody_elses_answer(server: Server) -> None:
    gate = asyncio.Event()

    async def wait(parts: list[bytes], writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        await echo(parts, writer)

    server.behave = wait
    client = client_of(server)
    first = asyncio.ensure_future(client.execute(resp.command("ECHO", "first")))
    second = asyncio.ensure_future(client.execute(resp.command("ECHO", "second")))
    while not server.seen:
        await asyncio.sleep(0.001)
    first.cancel()
    gate.set()
    assert await second == b"second"
    assert first.cancelled()
    client.close()


async def test_an_error_is_the_one_commands_alone(server: Server) -> None:
    async def refuse(parts: list[bytes], writer: asyncio.StreamWriter) -> None:
        writer.write(b"-ERR no\r\n" if parts == [b"BAD"] else b"+PONG\r\n")

    server.behave = refuse
    client = client_of(server)
    bad, good = await asyncio.gather(client.execute(resp.command("BAD")), client.execute(PING), return_exceptions=True)
    assert isinstance(bad, ErrorReply)
    assert good == b"PONG"
    assert server.connections == 1
    client.close()


async def test_commands_sent_together_leave_in_one_packet(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(server)
    assert await client.execute_all([PING]) == [b"PING"]
    connection = client._connection
    assert connection is not None
    assert connection._transport is not None
    packets: list[bytes] = []
    write = connection._transport.write

    class Recording:
        def write(self, data: bytes) -> None:
            packets.append(data)
            write(data)

        def abort(self) -> None:
            return

    monkeypatch.setattr(connection, "_transport", Recording())
    commands = [resp.command("ECHO", number) for number in range(3)]
    assert await client.execute_all(commands) == [b"0", b"1", b"2"]
    assert packets == [b"".join(commands)]
    assert await client.execute_all([PING]) == [b"PING"]
    monkeypatch.undo()
    client.close()


async def test_an_error_among_commands_sent_together_is_raised_and_the_next_ones_are_answered(server: Server) -> None:
    async def refuse(parts: list[bytes], writer: asyncio.StreamWriter) -> None:
        writer.write({b"BAD": b"-ERR no\r\n", b"OLD": b"-READONLY no\r\n"}.get(parts[0], b"+PONG\r\n"))

    server.behave = refuse
    client = client_of(server)
    for bad, code, connections in (("BAD", "ERR", 1), ("OLD", "READONLY", 2)):
        with pytest.raises(ErrorReply) as raised:
            await client.execute_all([PING, resp.command(bad), PING])
        assert raised.value.code == code
        assert await client.execute_all([PING, PING]) == [b"PONG", b"PONG"]
        assert server.connections == connections, "a server that is no primary is left"
    client.close()


async def test_commands_sent_together_go_again_on_a_new_connection_and_not_after_silence(server: Server) -> None:
    async def part(parts: list[bytes], writer: asyncio.StreamWriter) -> None:
        if server.connections == 1:
            writer.close()
        elif parts != [b"PING"]:
            await echo(parts, writer)

    server.behave = part
    client = client_of(server, timeout_s=0.5)
    both = [resp.command("ECHO", "one"), resp.command("ECHO", "two")]
    assert await client.execute_all(both) == [b"one", b"two"]
    seen = len(server.seen)
    with pytest.raises(TimeoutError):
        await client.execute_all([PING, PING])
    assert len(server.seen) == seen + 2
    client.close()


async def test_silence_fails_all_who_wait_and_the_next_one_connects_again(server: Server) -> None:
    async def silent(parts: list[bytes], writer: asyncio.StreamWriter) -> None:
        return

    client = client_of(server, timeout_s=0.5)
    assert await client.execute(resp.command("ECHO", "warm")) == b"warm"
    server.behave = silent
    failed = await asyncio.gather(*(client.execute(PING) for _ in range(3)), return_exceptions=True)
    assert [type(fault) for fault in failed] == [TimeoutError] * 3
    assert len(server.seen) == 4, "what may have been counted is not sent again"
    server.behave = echo
    assert await client.execute(resp.command("ECHO", "back")) == b"back"
    assert server.connections == 2
    client.close()


async def test_a_connection_that_ended_meanwhile_is_replaced(server: Server) -> None:
    async def part(parts: list[bytes], writer: asyncio.StreamWriter) -> None:
        if server.connections == 1:
            writer.close()
        else:
            await echo(parts, writer)

    server.behave = part
    opened: list[int] = []
    client = PipelinedRedis(
        f"redis://127.0.0.1:{server.port}",
        timeout_s=LONG_TIMEOUT_S,
        on_open=lambda: opened.append(len(server.seen)),
    )
    assert await client.execute(resp.command("ECHO", "again")) == b"again"
    assert server.connections == 2
    assert opened == [0, 1], "told of each connection before its first command"
    client.close()


@pytest.mark.parametrize("talk", [b"+one\r\n+two\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"+one\r\n$9\r\n"])
async def test_bytes_that_nobody_asked_for_are_never_the_next_answer(server: Server, talk: bytes) -> None:
    async def chatter(parts: list[bytes], writer: asyncio.StreamWriter) -> None:
        writer.write(talk if parts == [b"FIRST"] else b"+mine\r\n")

    server.behave = chatter
    client = client_of(server)
    [first] = await asyncio.gather(client.execute(resp.command("FIRST")), return_exceptions=True)
    assert first == b"one" if talk.startswith(b"+one") else isinstance(first, ConnectionError)
    connections = server.connections
    assert await client.execute(PING) == b"mine"
    assert server.connections == connections + 1
    client.close()


async def test_nobody_there_is_an_error_at_once() -> None:
    closed = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = closed.sockets[0].getsockname()[1]
    closed.close()
    await closed.wait_closed()
    with pytest.raises(ConnectionError):
        await PipelinedRedis(f"redis://127.0.0.1:{port}", timeout_s=LONG_TIMEOUT_S).execute(PING)


async def test_it_says_who_it_is_and_picks_its_database(server: Server) -> None:
    async def greet(parts: list[bytes], writer: asyncio.StreamWriter) -> None:
        writer.write(b"+OK\r\n")

    server.behave = greet
    client = client_of(server, address="redis://anna:p%40ss@127.0.0.1:{}/3")
    await client.execute(PING)
    assert server.seen == [[b"AUTH", b"anna", b"p@ss"], [b"SELECT", b"3"], [b"PING"]]
    client.close()


async def test_a_refused_password_lets_nothing_through(server: Server) -> None:
    async def refuse(parts: list[bytes], writer: asyncio.StreamWriter) -> None:
        writer.write(b"-WRONGPASS invalid\r\n")

    server.behave = refuse
    client = client_of(server, address="redis://:wrong@127.0.0.1:{}")
    with pytest.raises(ErrorReply, match="WRONGPASS"):
        await client.execute(PING)
    assert [b"PING"] not in server.seen
    client.close()


async def test_all_who_wait_for_a_connection_share_one_attempt_and_its_failure(server: Server) -> None:
    """A server that takes connections and never answers the password costs everybody one deadline, not one each."""

    async def silent(parts: list[bytes], writer: asyncio.StreamWriter) -> None:
        return

    server.behave = silent
    client = client_of(server, timeout_s=0.2, address="redis://:secret@127.0.0.1:{}")
    loop = asyncio.get_running_loop()
    failed_at: list[float] = []

    async def ask() -> None:
        with pytest.raises(TimeoutError):
            await client.execute(PING)
        failed_at.append(loop.time())

    await asyncio.gather(*(ask() for _ in range(128)))
    assert server.connections == 1
    assert len(failed_at) == 128
    assert server.seen == [[b"AUTH", b"secret"]]
    server.behave = echo
    assert await client.execute(resp.command("ECHO", "back")) == b"back"
    assert server.connections == 2
    client.close()


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"-READONLY You can't write against a read only replica.", "READONLY"),
        (b"-ERR Error running script (call to f_1): @user_script:24: -READONLY You can't write", "READONLY"),
        (b"-LOADING Redis is loading the dataset in memory", "LOADING"),
        (b"-MASTERDOWN Link with MASTER is down", "MASTERDOWN"),
        (b"-MISCONF Redis is configured to save RDB snapshots", "MISCONF"),
    ],
)
async def test_a_server_that_cannot_write_is_left_and_its_name_is_followed(
    server: Server, said: bytes, code: str
) -> None:
    async def first_refuses(parts: list[bytes], writer: asyncio.StreamWriter) -> None:
        writer.write(said + b"\r\n" if server.connections == 1 else b"+PONG\r\n")

    server.behave = first_refuses
    client = client_of(server)
    with pytest.raises(ErrorReply) as refused:
        await client.execute(PING)
    assert refused.value.code == code
    assert await client.execute(PING) == b"PONG", "on a new connection"
    assert server.connections == 2
    client.close()


async def test_a_busy_loop_waits_for_a_silent_server_no_longer_than_one_more_check() -> None:
    """Each timer fires late here, which says nothing of Redis; the silence ends the wait all the same."""
    loop, ended, passes = asyncio.get_running_loop(), asyncio.Event(), []

    def be_late() -> None:
        time.sleep(0.02)
        passes.append(1)
        if not ended.is_set():
            loop.call_soon(be_late)

    connection = PipelinedConnection(loop, 0.05)
    connection.connection_made(_Silent())
    be_late()
    with pytest.raises(TimeoutError):
        await connection.send(PING)
    ended.set()
    # One before the wait, three up to the deadline, one for each check after it, and what the loop had begun.
    assert len(passes) <= 4 + MAX_RECHECKS + 2

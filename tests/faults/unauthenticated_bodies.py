"""Large bodies of strangers: `python -m tests.faults.unauthenticated_bodies [--connections 1000]`.

Each connection sends the head of a request and all but the last byte of 4 MiB, as far as it is taken, and stays. Once
without a bearer, and once with one that nobody has. The report ends with 1 when the process grew by more than 100 MiB,
or when somebody else's /health or call was not answered.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.faults.attacked_gateway import Attacked, Seen, gateway_of_its_own, head, onlooker

MIB = 1024 * 1024
BODY_BYTES = 4 * MIB
MOST_GROWTH_BYTES = 100 * MIB
STAYS_S = 5.0
BEARERS = {"no bearer": None, "a bearer of nobody": "cak_" + "a" * 12 + "_" + "b" * 43}


@dataclass(frozen=True)
class Flood:
    """The figures of one flood. `sent_bytes` are the bytes that the server's machine took."""

    before_bytes: int
    seen: Seen
    sent_bytes: int

    @property
    def growth_bytes(self) -> int:
        """Of the process, at most."""
        return self.seen.peak_bytes - self.before_bytes

    def faults(self) -> list[str]:
        """The broken bounds."""
        found = []
        if self.growth_bytes > MOST_GROWTH_BYTES:
            found.append(f"memory grew by {self.growth_bytes / MIB:.0f} MiB")
        if self.seen.lost or not self.seen.health_ms:
            found.append(f"{self.seen.lost} requests were not answered")
        if not self.seen.statuses or set(self.seen.statuses) != {200}:
            found.append(f"calls were answered {sorted(set(self.seen.statuses))}")
        return found


async def flood(target: Attacked, connections: int, bearer: str | None, stays_s: float = STAYS_S) -> Flood:
    """All connections at once, from a process of their own."""
    before = target.memory_bytes()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as attackers:
        attack = partial(send_all, target.port, connections, head(bearer, BODY_BYTES), stays_s)
        async with onlooker(target) as seen:
            sent = await asyncio.get_running_loop().run_in_executor(attackers, attack)
    return Flood(before, seen, sent)


def send_all(port: int, connections: int, start: bytes, stays_s: float) -> int:
    """The bytes of bodies that were taken."""

    async def send() -> int:
        body = memoryview(bytes(BODY_BYTES - 1))
        return sum(await asyncio.gather(*(_one(port, start, body, stays_s) for _ in range(connections))))

    return asyncio.run(send())


async def _one(port: int, start: bytes, body: memoryview, stays_s: float) -> int:
    """Send until nothing more is taken, then stay connected until the time is over."""
    sent = 0
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(stays_s):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.transport.set_write_buffer_limits(0)
            try:
                writer.write(start)
                for begin in range(0, len(body), 64 * 1024):
                    writer.write(body[begin : begin + 64 * 1024])
                    await writer.drain()
                    sent = begin
                await asyncio.sleep(stays_s)
            finally:
                writer.transport.abort()
    return sent


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=1_000)
    connections = parser.parse_args(arguments).connections
    broken = False
    for name, bearer in BEARERS.items():
        with gateway_of_its_own() as target:
            done = asyncio.run(flood(target, connections, bearer))
        sys.stdout.write(
            f"{connections} connections, {name}: {done.sent_bytes / MIB:.0f} MiB were sent,"
            f" memory {done.before_bytes / MIB:.0f} MiB, at most {done.growth_bytes / MIB:.0f} MiB more;"
            f" {done.seen.line()}\n"
        )
        for fault in done.faults():
            broken = True
            sys.stdout.write(f"  BROKEN: {fault}\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

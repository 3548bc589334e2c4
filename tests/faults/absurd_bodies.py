"""A member's 4 MiB of brackets beside everybody else's requests: `python -m tests.faults.absurd_bodies [--senders 4]`.

The senders have a valid key and send one body after the other for some seconds. The report ends with 1 when the 99th
percentile of somebody else's /health is above the bound, or a request was not answered.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
from collections.abc import Sequence

import aiohttp

from tests.e2e import agent
from tests.faults.attacked_gateway import Attacked, Seen, absurd, gateway_of_its_own, onlooker

MIB = 1024 * 1024
LASTS_S = 8.0
MOST_P99_MS = 500.0  # a tenth of it on a machine without other load; the old path took seconds


async def bodies(target: Attacked, senders: int, size_bytes: int, lasts_s: float) -> tuple[Seen, int]:
    """The onlooker's figures, and the number of answered bodies."""
    body = absurd(size_bytes)
    headers = {**agent.bearer(target.attacker.agent_key), "Content-Type": "application/json"}
    answered = 0

    async def send(session: aiohttp.ClientSession) -> None:
        nonlocal answered
        while True:
            async with session.post(target.web.mcp_url, data=io.BytesIO(body), headers=headers) as answer:
                await answer.read()
                answered += 1

    async with aiohttp.ClientSession() as session, onlooker(target) as seen:
        sending = [asyncio.ensure_future(send(session)) for _ in range(senders)]
        await asyncio.wait([asyncio.ensure_future(asyncio.sleep(lasts_s)), *sending], return_when="FIRST_COMPLETED")
        async with asyncio.timeout(60):  # longer on a slow machine, until there is something to report
            while sending and not (answered and seen.statuses) and not any(each.done() for each in sending):
                await asyncio.sleep(0.05)
        for each in sending:
            each.cancel()
        ended = await asyncio.gather(*sending, return_exceptions=True)
    faults = [each for each in ended if isinstance(each, Exception)]
    if faults:
        raise ExceptionGroup("a sender was not answered", faults)
    return seen, answered


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--size", type=int, default=4 * MIB, help="bytes of each body")
    asked = parser.parse_args(arguments)
    with gateway_of_its_own() as target:
        before = target.memory_bytes()
        for senders in (0, asked.senders):
            seen, answered = asyncio.run(bodies(target, senders, asked.size, LASTS_S))
            growth_mib = (seen.peak_bytes - before) / MIB
            sys.stdout.write(f"{senders} senders, {answered} bodies: {seen.line()}; memory {growth_mib:.0f} MiB more\n")
    if seen.p99_ms > MOST_P99_MS or seen.lost:
        sys.stdout.write(f"  BROKEN: the bound is {MOST_P99_MS:.0f} ms, and every request is answered\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

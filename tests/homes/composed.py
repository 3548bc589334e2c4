"""A deployment of compose.yaml is upgraded in place under calls: `python -m tests.homes.composed`.

[--seconds 20] [--rate 10]

After the steps of tests.homes.installed, agents call while GATEWAY_IMAGE in .env becomes another build and the service
is replaced as docs/operations/upgrades.md has it. Printed are the calls by outcome and the longest of them; the exit
code is 1 when a call failed, when the new build does not answer, or when something is left. Exit code 3 where it cannot
run. Eight minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import ssl
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from tests.faults.rolled import Caller, Plan
from tests.homes.document import blocks, replaced
from tests.homes.engine import say
from tests.homes.installed import HOST, ORIGIN, Home, expect_health, judged
from tests.vendors.processes import ROOT

UPGRADES = ROOT / "docs" / "operations" / "upgrades.md"
NEXT, NEXT_COMMIT = "gateway:next", "f" * 40
LONGEST_S = 2.0


class _Here(AbstractResolver):
    """The name of the deployment leads to this host."""

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=2, proto=0, flags=0)]

    async def close(self) -> None:
        return


@dataclass
class Timed(Caller):
    """`slowest_s`: of all calls."""

    slowest_s: float = 0.0

    async def call(self, origin: str, takes_s: float) -> str:
        began_s = time.monotonic()
        outcome = await super().call(origin, takes_s)
        self.slowest_s = max(self.slowest_s, time.monotonic() - began_s)
        return outcome


@contextlib.asynccontextmanager
async def caller_of(home: Home, key: str) -> AsyncIterator[Timed]:
    context = ssl.create_default_context(cadata=home.authorities())
    connector = aiohttp.TCPConnector(limit=0, ssl=context, resolver=_Here())
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=90)) as session:
        yield Timed(home.vendor, [key], session)


def upgrade(home: Home) -> None:
    """An image that calls itself another build, and the commands of the document."""
    build = f"printf 'FROM gateway:local\\nENV GATEWAY_COMMIT={NEXT_COMMIT}\\n' | docker build --tag {NEXT} -"
    home.engine.shell(build, home.folder)
    env = home.folder / ".env"
    env.write_text(f"{env.read_text()}GATEWAY_IMAGE={NEXT}\n")
    [step] = [step for step in blocks(UPGRADES.read_text(encoding="utf-8")) if step.name == "one-host"]
    say(f"--- upgrade\n{step.text.rstrip()}")
    began_s = time.monotonic()
    home.engine.shell(replaced(step.text, {}), home.folder)
    say(f"    {time.monotonic() - began_s:.0f} s")


def health(home: Home) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(home.engine.run("curl", "-fsS", f"{ORIGIN}/health"))
    return found


async def under_calls(home: Home, key: str, seconds: float, rate: float) -> None:
    """Raises: AssertionError when a call failed or the new build does not answer."""
    outcomes: Counter[str] = Counter()
    before, ended = await asyncio.to_thread(health, home), asyncio.Event()
    async with caller_of(home, key) as caller:
        home.vendor.bodies.clear()
        plan = Plan(rate=rate, longest_s=LONGEST_S)
        load = asyncio.ensure_future(caller.load(ORIGIN, plan, outcomes, ended))
        try:
            await asyncio.sleep(seconds / 2)
            await asyncio.to_thread(upgrade, home)
            await asyncio.sleep(seconds / 2)
        finally:
            ended.set()
            await load
    after = await asyncio.to_thread(health, home)
    say(f"{before['commit'][:12]} became {after['commit'][:12]} at {HOST}: {dict(outcomes)}")
    say(f"the longest call took {caller.slowest_s:.1f} s; sent twice: {caller.sent_twice()}")
    assert (before["commit"] != NEXT_COMMIT, after["commit"]) == (True, NEXT_COMMIT), (before, after)
    assert set(outcomes) == {"200"}, outcomes
    assert caller.sent_twice() == 0
    await asyncio.to_thread(expect_health, home)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="of calls around the upgrade")
    parser.add_argument("--rate", type=float, default=10.0, help="calls a second")
    asked = parser.parse_args()
    return judged(lambda home, key: under_calls(home, key, asked.seconds, asked.rate))


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.faults.redis_hangs`: Redis hangs under load, and the report says what that costs.

DATABASE_URL names a PostgreSQL server on which databases may be made; Redis is a process of the run's own. The exit
code is 1 when a bound is broken. `--seconds 5 --bearers 50 --rate 50` makes a short run for trying.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Operator, Web
from tests.fakes.redis_server import is_installed, redis_server
from tests.fakes.silent_relay import relay_to
from tests.fakes.vendor import running_vendor
from tests.faults.hang_figures import Figures
from tests.faults.hang_stage import LIMIT, WEBS, Caller, Stage, caller, stage

WARM_S = 3.0
SAMPLE_S = 1.0
WINDOW = 5  # samples
POLL_S = 0.02
GIVES_UP_S = 35.0
SHORT_HANG_S = 1.5


class Run:
    """One run on a stage."""

    def __init__(self, on: Stage, by: Caller, figures: Figures) -> None:
        self.stage, self.caller, self.figures = on, by, figures
        self.first = on.webs[0]

    async def measure(self) -> None:
        """The whole of it: warm, hung under load, two short hangs with a revocation in each, and one host cut off."""
        await self._warm()
        with self.stage.operator() as operator, self.stage.operator() as doomed:
            await self._hang(operator, doomed)
        await self._until_back()
        for is_killed in (False, True):
            with self.stage.operator() as operator:
                await self._revoked_before_it_is_back(operator, is_killed=is_killed)
            await self._until_back()
        await self._revoked_by_a_host_that_is_cut_off()
        self.figures.pending_bumps = self.stage.pending_bumps()

    async def _warm(self) -> None:
        """Every bearer has called once; then a few seconds of load with a Redis that is well."""
        keys = self.stage.keys
        for first in range(0, len(keys), 8):
            await asyncio.gather(*(self.caller.call(self.first, key) for key in keys[first : first + 8]))
        await asyncio.gather(*(self.caller.figures(web) for web in self.stage.webs))
        ended = asyncio.Event()
        asyncio.get_running_loop().call_later(WARM_S, ended.set)
        await self.caller.load(self.first, keys, self.figures.calls_per_s, ended)
        self.figures.lateness_well_ms = (await self.caller.figures(self.first))["lateness_s"] * 1000
        self.caller.statuses.clear()
        self.caller.slowest_s = 0.0

    async def _hang(self, operator: Operator, doomed: Operator) -> None:
        spare, killed, greedy = (self.stage.spare() for _ in range(3))
        ended = asyncio.Event()
        asyncio.get_running_loop().call_later(self.figures.hung_s, ended.set)
        with self.stage.redis.hung():
            load = asyncio.ensure_future(self.caller.load(self.first, self.stage.keys, self.figures.calls_per_s, ended))
            samples = asyncio.ensure_future(self._sample(ended))
            self.figures.share_of_limit = LIMIT // WEBS
            self.figures.admitted_per_process = [
                await self._admitted(web, greedy["agent_key"]) for web in self.stage.webs
            ]
            await self._allowed_everywhere(spare["agent_key"])
            revoke = asyncio.to_thread(operator.run, "revoke_agent_key", client_id=spare["client_id"])
            revoked = asyncio.ensure_future(revoke)
            self.figures.in_force_s["a revocation"] = await self._refused_everywhere(spare["agent_key"])
            await revoked
            await self._allowed_everywhere(killed["agent_key"])
            await self._revoke_and_kill(doomed, killed["client_id"])
            which = "a revocation whose process was killed"
            self.figures.in_force_s[which] = await self._refused_everywhere(killed["agent_key"])
            await asyncio.gather(load, samples)
            measured = await self.caller.figures(self.first)
        self.figures.statuses = self.caller.statuses
        self.figures.slowest_call_ms = self.caller.slowest_s * 1000
        self.figures.lateness_ms = measured["lateness_s"] * 1000
        self.figures.own_lateness_ms = measured["own_lateness_s"] * 1000
        self.figures.wait_ms = measured["wait_s"] * 1000
        self.figures.local_share = measured["local"] / max(1.0, measured["admissions"])

    async def _sample(self, ended: asyncio.Event) -> None:
        """Transactions of the database, each second."""
        seen = [(time.monotonic(), await asyncio.to_thread(self.stage.statements))]
        while not ended.is_set():
            await asyncio.sleep(SAMPLE_S)
            seen.append((time.monotonic(), await asyncio.to_thread(self.stage.statements)))
        (began_s, first), (ended_s, last) = seen[0], seen[-1]
        self.figures.statements_per_s = (last - first) / (ended_s - began_s)
        width = min(WINDOW, len(seen) - 1)
        self.figures.worst_statements_per_s = max(
            (after - before) / (late_s - early_s)
            for (early_s, before), (late_s, after) in zip(seen, seen[width:], strict=False)
        )

    async def _revoked_before_it_is_back(self, operator: Operator, *, is_killed: bool) -> None:
        """Both servers know the bearer under epochs that were true; no call uses it until Redis is back."""
        service_client = self.stage.spare()
        await self._allowed_everywhere(service_client["agent_key"])
        with self.stage.redis.hung():
            await asyncio.sleep(SHORT_HANG_S)
            if is_killed:
                await self._revoke_and_kill(operator, service_client["client_id"])
            else:
                await asyncio.to_thread(operator.run, "revoke_agent_key", client_id=service_client["client_id"])
        which = "a revocation whose process was killed" if is_killed else "a revocation"
        self.figures.in_force_once_back_s[which] = await self._refused_everywhere(service_client["agent_key"])

    async def _revoked_by_a_host_that_is_cut_off(self) -> None:
        """Its packets to Redis are lost; everybody else reaches Redis and believes its epochs."""
        service_client = self.stage.spare()
        with contextlib.ExitStack() as stack:
            cable = stack.enter_context(relay_to("127.0.0.1", self.stage.redis.port))
            operator = stack.enter_context(self.stage.operator(REDIS_URL=self.stage.redis.url_through(cable.port)))
            await self._allowed_everywhere(service_client["agent_key"])
            cable.silence()
            await self._revoke_and_kill(operator, service_client["client_id"])
        self.figures.in_force_elsewhere_s["a revocation by a host that is cut off"] = await self._refused_everywhere(
            service_client["agent_key"]
        )

    async def _revoke_and_kill(self, operator: Operator, client_id: str) -> None:
        """The revocation is committed, and its process ended in the middle of what comes after."""
        before = self.stage.agent_keys()
        revoke = asyncio.ensure_future(asyncio.to_thread(operator.run, "revoke_agent_key", client_id=client_id))
        await self._in_database(lambda: self.stage.agent_keys() < before)
        operator.program.kill()
        await asyncio.gather(revoke, return_exceptions=True)

    async def _in_database(self, is_there: Callable[[], bool]) -> None:
        while not await asyncio.to_thread(is_there):
            await asyncio.sleep(POLL_S)

    async def _allowed_everywhere(self, key: str) -> None:
        for web in self.stage.webs:
            while await self.caller.call(web, key) != 200:
                await asyncio.sleep(POLL_S)

    async def _refused_everywhere(self, key: str) -> float | None:
        """Seconds from now until every server refuses it, and goes on refusing."""
        began_s = time.monotonic()
        left: list[Web] = list(self.stage.webs)
        while left:
            if time.monotonic() - began_s > GIVES_UP_S:
                return None
            left = [web for web in left if await self.caller.call(web, key) != 401]
            await asyncio.sleep(POLL_S if left else 0)
        took_s = time.monotonic() - began_s
        again = [await self.caller.call(web, key) for web in self.stage.webs]
        return took_s if again == [401] * len(again) else None

    async def _admitted(self, web: Web, key: str) -> int:
        """Calls of one subject that the process lets through, of as many as the whole limit."""
        answers = [await self.caller.call(web, key) for _ in range(LIMIT // WEBS + 10)]
        return answers.count(200)

    async def _until_back(self) -> None:
        """Every server believes epochs again."""
        for web in self.stage.webs:
            key = self.stage.keys[0]
            while True:
                await self.caller.figures(web)
                await self.caller.call(web, key)
                if (await self.caller.figures(web))["local"] == 0:
                    break
                await asyncio.sleep(POLL_S)


async def run(on: Stage, figures: Figures) -> None:
    """Measure everything into `figures`."""
    async with caller() as by:
        await Run(on, by, figures).measure()


async def with_vendor(template: Template, folder: Path, figures: Figures) -> None:
    """The run with a vendor in this process."""
    async with running_vendor(api_key=None, delay_s=0.02) as vendor:
        with redis_server() as redis, stage(template, folder, redis, vendor.url, figures.bearers) as on:
            await run(on, figures)


def main() -> int:
    """Print the report; 1 when a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long Redis hangs (60)")
    parser.add_argument("--bearers", type=int, default=1_000, help="active bearers (1000)")
    parser.add_argument("--rate", type=float, default=200.0, help="calls a second (200)")
    asked = parser.parse_args()
    if not is_installed() or not os.environ.get("DATABASE_URL", "").startswith("postgres"):
        parser.error("needs redis-server, and DATABASE_URL with PostgreSQL")
    os.environ.pop("REDIS_URL", None)
    figures = Figures(asked.bearers, asked.rate, asked.seconds)
    with tempfile.TemporaryDirectory(prefix="redis-hangs-") as name:
        folder = Path(name)
        template = Template(folder)
        try:
            asyncio.run(with_vendor(template, folder / "var", figures))
        finally:
            template.remove()
    print(figures)  # noqa: T201 - the report
    return 0 if figures.holds else 1


if __name__ == "__main__":
    sys.exit(main())

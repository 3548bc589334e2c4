"""Tokens of vendor connections are renewed by two web processes: `python -m tests.faults.vendor_refresh`.

[--rounds 1000] [--seconds 360] [--kill-every 25]

In a plain round the token has ended for the gateway and for the vendor; fifty calls come at once, half of them to each
process. The vendor must be asked once, and every call must be answered. In every `--kill-every`th round the process
that asked is killed with SIGKILL after the vendor's answer and before it is stored: the row is locked meanwhile. Then
the vendor's rules decide. One that takes a used token again keeps the connection; for one that ends the grant the
calls must say that a new sign-in is needed, and a new sign-in must heal it. Of the kills, the first waits for the
lease's whole time. Printed are the figures; the exit code is 1 when a check fails. Needs redis-server and DATABASE_URL
with PostgreSQL. The rounds end after `--seconds`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import psycopg

from tests.e2e import agent
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, Operator, Web, deployment, wait_for
from tests.e2e.vendor_browser import COOKIE, connected, shared_page
from tests.fakes.redis_server import is_installed, redis_server
from tests.vendors.processes import free_port
from tests.vendors.servers import OAUTH_VENDOR, OAuthVendor, oauth_vendor_server

CALLS = 50
OK, SIGN_IN = "ok", "sign in again"
# Of a call: longer than a lease and the renewal after it.
CALL_DEADLINE_S = 60.0


@dataclass
class Figures:
    """`faults`: what went wrong, in words."""

    rounds: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)  # of calls in plain rounds
    renewals: int = 0  # that the vendor was asked for in plain rounds
    kills: int = 0
    survived: int = 0
    said_in_words: int = 0
    healed: int = 0
    slowest_s: float = 0.0
    faults: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        plain = self.rounds - self.kills
        right = self.renewals == plain and self.outcomes == Counter({OK: plain * CALLS})
        return right and not self.faults and self.rounds > 0 and self.survived + self.said_in_words == self.kills

    def __str__(self) -> str:
        lines = (
            f"{self.rounds - self.kills} plain rounds: calls {dict(self.outcomes)}; renewals {self.renewals}",
            f"the slowest plain round took {self.slowest_s:.2f} s",
            f"{self.kills} kills between answer and commit: {self.survived} connections survived",
            f"{self.said_in_words} said that a sign-in is needed, {self.healed} healed by one",
            *self.faults[:20],
            "GOOD" if self.holds else "BROKEN",
        )
        return "\n".join(lines)


@dataclass
class Stage:
    """Two web processes, their operator, and a vendor with an authorization server."""

    made: Deployment
    operator: Operator
    vendor: OAuthVendor
    webs: list[Web]
    stacks: list[contextlib.ExitStack]
    org_id: str
    key: str

    def run(self, name: str) -> Any:
        return self.operator.run(name, org_id=self.org_id)

    def facts(self) -> dict[str, Any]:
        [found] = self.run("connection_facts")
        return dict(found)

    def sign_in(self, web: Web) -> None:
        with web.client() as browser:
            browser.cookies.set(COOKIE, self.run("sign_in_owner"))
            connected(browser, shared_page(self.org_id), self.vendor)

    def replace(self, place: int) -> None:
        """A process in place of one that was killed."""
        self.stacks[place].close()
        self.webs[place] = self.stacks[place].enter_context(self.made.web(port=self.webs[place].port))

    def close(self) -> None:
        for stack in self.stacks:
            stack.close()

    async def calls(self, webs: list[Web], count: int) -> list[str]:
        """The outcomes of so many calls at once, in turn at the processes."""
        timeout = aiohttp.ClientTimeout(total=CALL_DEADLINE_S)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            return await asyncio.gather(
                *(self._call(session, webs[number % len(webs)], number) for number in range(count))
            )

    async def _call(self, session: aiohttp.ClientSession, web: Web, number: int) -> str:
        params = {"name": "signin_echo", "arguments": {"words": str(number)}}
        body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        try:
            async with session.post(web.mcp_url, json=body, headers=agent.bearer(self.key)) as answer:
                if answer.status != 200:
                    return str(answer.status)
                result = (await answer.json()).get("result", {})
        except (aiohttp.ClientError, TimeoutError, ValueError) as fault:
            return type(fault).__name__
        text = result["content"][0]["text"] if result else "no result"
        if not result.get("isError"):
            return OK if text == str(number) else "another answer"
        return SIGN_IN if SIGN_IN in text and shared_page(self.org_id) in text else text


async def plain_round(on: Stage, figures: Figures) -> None:
    """Fifty calls after the token's end."""
    on.run("make_connections_due")
    on.vendor.end_access()
    before, began_s = on.vendor.stats(), time.monotonic()
    figures.outcomes.update(await on.calls(on.webs, CALLS))
    figures.slowest_s = max(figures.slowest_s, time.monotonic() - began_s)
    after = on.vendor.stats()
    figures.renewals += after["refresh_asked"] - before.get("refresh_asked", 0)
    if after.get("replayed", 0) != before.get("replayed", 0):
        figures.faults.append("a used refresh token was sent")


async def kill_round(on: Stage, figures: Figures, *, grace: bool, whole_lease: bool) -> None:
    """The first process asks and is killed with the vendor's answer in its memory; then the other one is called."""
    figures.kills += 1
    on.vendor.control(grace=grace, refresh_pause_s=0.5)
    on.run("make_connections_due")
    on.vendor.end_access()
    before = on.vendor.stats().get("refreshed", 0)
    caller = asyncio.ensure_future(on.calls(on.webs[:1], 5))
    await asyncio.to_thread(wait_for, lambda: on.facts()["is_leased"])
    with locked_rows(on.made.database.url) as waiting:
        await asyncio.to_thread(wait_for, lambda: on.vendor.stats().get("refreshed", 0) > before)
        await asyncio.to_thread(wait_for, waiting)
        on.webs[0].kill()
    on.vendor.control(refresh_pause_s=0.0)
    if OK in await caller:
        figures.faults.append("a killed process answered a call")
    if not on.facts()["is_leased"]:
        figures.faults.append("the answer was stored before the kill")
    if not whole_lease:
        on.run("end_leases")
    told = set(await on.calls(on.webs[1:], 10))
    if told == {OK} and grace:
        figures.survived += 1
    elif told == {SIGN_IN} and not grace and on.facts()["problem"]:
        figures.said_in_words += 1
    else:
        figures.faults.append(f"after a kill: {sorted(told)}, {on.facts()}")
    await asyncio.to_thread(on.replace, 0)
    if not grace:
        await asyncio.to_thread(on.sign_in, on.webs[1])
        figures.healed += set(await on.calls(on.webs, 10)) == {OK}


@contextlib.contextmanager
def locked_rows(url: str) -> Iterator[Any]:
    """Rows of connections cannot be changed meanwhile; gives whether a process waits for one."""
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as looker:
        holder.execute("SELECT id FROM credentials_vendorconnection FOR UPDATE")

        def is_waiting() -> bool:
            found = looker.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ).fetchone()
            return found is not None and found[0] > 0

        yield is_waiting
        holder.rollback()


@contextlib.contextmanager
def staged(template: Template, folder: Path) -> Iterator[Stage]:
    """The stage with a Redis and a database of its own; the organization is connected."""
    with (
        oauth_vendor_server() as vendor,
        redis_server() as redis,
        deployment(template, folder, variables={"TOOL_CALLS_PER_HOUR": "1000000"}) as made,
        made.operator(REDIS_URL=redis.url) as operator,
    ):
        made.environment["REDIS_URL"] = redis.url
        operator.run("load_catalog", text=OAUTH_VENDOR.format(url=vendor.mcp_url, more=""))
        org_id = operator.run("create_organization", name="Org")
        key = operator.run("create_service_client", org_id=org_id, name="bot")["agent_key"]
        stacks = [contextlib.ExitStack(), contextlib.ExitStack()]
        webs = [stacks[0].enter_context(made.web()), stacks[1].enter_context(made.web(port=free_port()))]
        on = Stage(made, operator, vendor, webs, stacks, org_id, key)
        try:
            on.sign_in(webs[0])
            yield on
        finally:
            on.close()


async def play(on: Stage, *, rounds: int, kill_every: int, seconds: float, whole_leases: int = 0) -> Figures:
    """Rounds until there are enough or the time is over. The first `whole_leases` kills wait for the whole lease."""
    figures, ends_s = Figures(), time.monotonic() + seconds
    await on.calls(on.webs, 4)
    while figures.rounds < rounds and time.monotonic() < ends_s:
        figures.rounds += 1
        if figures.rounds % kill_every:
            await plain_round(on, figures)
        else:
            grace, whole = figures.kills % 2 == 1, figures.kills < whole_leases
            await kill_round(on, figures, grace=grace, whole_lease=whole)
    return figures


def main() -> int:
    """Print the figures; 1 when a check fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=360.0, help="after which no round begins")
    parser.add_argument("--kill-every", type=int, default=25)
    asked = parser.parse_args()
    if not is_installed() or not os.environ.get("DATABASE_URL", "").startswith("postgres"):
        parser.error("needs redis-server, and DATABASE_URL with PostgreSQL")
    os.environ.pop("REDIS_URL", None)
    with tempfile.TemporaryDirectory(prefix="vendor-refresh-") as name:
        folder = Path(name)
        template = Template(folder)
        try:
            with staged(template, folder / "var") as on:
                figures = asyncio.run(
                    play(on, rounds=asked.rounds, kill_every=asked.kill_every, seconds=asked.seconds, whole_leases=1)
                )
        finally:
            template.remove()
    print(figures)  # noqa: T201
    return 0 if figures.holds else 1


if __name__ == "__main__":
    sys.exit(main())

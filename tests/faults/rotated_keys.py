"""The master key is rotated under load, and the rotation is killed: `python -m tests.faults.rotated_keys`.

[--organizations 300] [--rate 40] [--kills 3]

Two web processes behind a balancer that asks /ready call a vendor that wants each organization's own credential. The
processes are started with both keys, one after the other. rotate_master_key is killed with SIGKILL after some batches,
again and again, and then runs to its end. Last, the processes start with the new key alone. Meanwhile credentials are
stored. Printed are the figures; the exit code is 1 when a call failed, a row was sealed with a key that a process
lacked, or a row stayed behind. Needs DATABASE_URL with PostgreSQL, and redis-server. A minute.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, Operator, deployment
from tests.fakes import ready_proxy
from tests.fakes.patient_vendor import PatientVendor
from tests.fakes.redis_server import RedisServer, is_installed, redis_server
from tests.fakes.vendor import running_vendor
from tests.faults import rolled
from tests.faults.rolled import Caller, Processes, sessions

CALLING = 10  # organizations whose agents call
API_KEY = "the-vendor-s-own-key"
CATALOG = """
[[vendor]]
slug = "fake"
name = "Fake"
url = "{url}"
tool_prefix = "fake"
docs_url = "https://vendor.example/docs"
timeout_seconds = 30
[[vendor.headers]]
name = "X-Api-Key"
value = "{{apiKey}}"
[[vendor.fields]]
name = "apiKey"
label = "API key"
secret = true
required = true
"""
RUN_DEADLINE_S = 240.0


@dataclass
class Plan:
    """Each killed run of the rotation commits `batches` batches of `batch_size` rows before its end."""

    organizations: int = 300
    rate: float = 40.0
    kills: int = 3
    batches: int = 4
    batch_size: int = 5
    longest_s: float = 1.0


@dataclass
class Figures:
    """`midway`: rows under (old, new) after each kill. `too_early`: rows under the new key before all had it."""

    outcomes: Counter[str] = field(default_factory=Counter)
    sent_twice: int = 0
    replaced: int = 0
    stored: int = 0  # credentials of new organizations, during all this
    too_early: int = 0
    midway: list[tuple[int, int]] = field(default_factory=list)
    left_behind: int = 0
    moved: int = 0

    @property
    def holds(self) -> bool:
        return (
            self.outcomes["200"] > 0
            and len(self.outcomes) == 1
            and self.sent_twice == self.too_early == self.left_behind == 0
            and self.replaced == 4
            and self.stored == 4
            and len(self.midway) > 0
            and all(old > 0 and new > 0 for old, new in self.midway)
            and self.moved > 0
        )

    def __str__(self) -> str:
        lines = (
            f"calls: {dict(self.outcomes)}; sent twice: {self.sent_twice}",
            f"{self.replaced} processes replaced, {self.stored} credentials of new organizations stored",
            f"rows under the new key before every process had it: {self.too_early}",
            f"rows under (old, new) after each kill: {self.midway}",
            f"afterwards {self.moved} under the new key, {self.left_behind} under the old one",
            "GOOD" if self.holds else "BROKEN",
        )
        return "\n".join(lines)


def entry(name: str) -> str:
    return f"{name}:{base64.b64encode(os.urandom(32)).decode()}"


@dataclass
class Stage:
    made: Deployment
    vendor: PatientVendor
    plan: Plan
    old: str
    new: str
    figures: Figures = field(default_factory=Figures)
    keys: list[str] = field(default_factory=list)

    @property
    def both(self) -> str:
        return f"{self.new},{self.old}"

    def prepare(self) -> None:
        with self.made.operator() as operator:
            operator.run("load_catalog", text=CATALOG.format(url=self.vendor.url))
            for number in range(self.plan.organizations):
                org_id = self._organization(operator, f"Org{number}")
                if number < CALLING:
                    self.keys.append(operator.run("create_service_client", org_id=org_id, name="bot")["agent_key"])

    async def run(self) -> None:
        environment = {"CREDENTIAL_KEYS": self.old, "DRAIN_DELAY_SECONDS": "1", "DEPLOYMENT_PROCESSES": "2"}
        processes = Processes(self.made, environment)
        try:
            for port in processes.ports:
                await asyncio.to_thread(processes.start, port)
            with ready_proxy.ready_proxy(processes.ports) as balancer:
                async with sessions(self.vendor, self.keys) as caller:
                    await self._under_load(caller, f"http://127.0.0.1:{balancer.port}", self._rotate(processes))
                    self.figures.sent_twice = caller.sent_twice()
        finally:
            processes.stop()

    async def _under_load(self, caller: Caller, origin: str, work: Awaitable[None]) -> None:
        ended = asyncio.Event()
        pace = rolled.Plan(rate=self.plan.rate, longest_s=self.plan.longest_s)
        load = asyncio.ensure_future(caller.load(origin, pace, self.figures.outcomes, ended))
        try:
            await work
        finally:
            ended.set()
            await load

    async def _rotate(self, processes: Processes) -> None:
        processes.environment["CREDENTIAL_KEYS"] = self.both
        await self._replace(processes, 0)
        # One process has both keys, the other has not, and whoever stores a credential has both.
        await asyncio.to_thread(self._store, self.both)
        self.figures.too_early = self._rows()["new"]
        await self._replace(processes, 1)
        await asyncio.to_thread(self._store, self.both)
        for _ in range(self.plan.kills):
            await asyncio.to_thread(self._rotate_and_kill)
            rows = self._rows()
            self.figures.midway.append((rows["old"], rows["new"]))
            await asyncio.sleep(0.5)
        await asyncio.to_thread(self._store, self.both)
        await asyncio.to_thread(self.made.manage, "rotate_master_key", CREDENTIAL_KEYS=self.both)
        processes.environment["CREDENTIAL_KEYS"] = self.new
        for place in (0, 1):
            await self._replace(processes, place)
        await asyncio.to_thread(self._store, self.new)
        rows = self._rows()
        self.figures.moved, self.figures.left_behind = rows["new"], rows["old"]
        await asyncio.sleep(1.0)

    async def _replace(self, processes: Processes, place: int) -> None:
        # The other process must serve before this one ends.
        await asyncio.sleep(1.0)
        replaced = rolled.Figures()
        await processes.replace(processes.ports[place], replaced)
        self.figures.replaced += replaced.replaced

    def _rotate_and_kill(self) -> None:
        with subprocess.Popen(
            [sys.executable, "manage.py", "rotate_master_key", "--batch-size", str(self.plan.batch_size)],
            cwd=self.made.code,
            env={**self.made.environment, "CREDENTIAL_KEYS": self.both},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as running:
            assert running.stdout is not None
            batches = (line for line in running.stdout if "data keys re-wrapped" in line)
            for _, _ in zip(range(self.plan.batches), batches, strict=False):
                pass
            running.send_signal(signal.SIGKILL)

    def _store(self, keys: str) -> None:
        with self.made.operator(CREDENTIAL_KEYS=keys) as operator:
            self._organization(operator, f"Later{self.figures.stored}")
        self.figures.stored += 1

    @staticmethod
    def _organization(operator: Operator, name: str) -> str:
        org_id: str = operator.run("create_organization", name=name)
        operator.run("connect_vendor", org_id=org_id, vendor="fake", fields={"apiKey": API_KEY})
        return org_id

    def _rows(self) -> Counter[str]:
        sql = "SELECT key_id, count(*) FROM credentials_organizationdatakey GROUP BY key_id"
        return Counter({str(name): int(number) for name, number in self.made.database.select(sql)})


async def staged(template: Template, folder: Path, plan: Plan) -> Figures:
    """The run with a vendor in this process, and a Redis and a database of its own."""
    async with running_vendor(PatientVendor, api_key=API_KEY) as vendor:
        assert isinstance(vendor, PatientVendor)
        with _data(template, folder) as (redis, made):
            made.environment["REDIS_URL"] = redis.url
            stage = Stage(made, vendor, plan, old=made.environment["CREDENTIAL_KEYS"], new=entry("new"))
            await asyncio.to_thread(stage.prepare)
            async with asyncio.timeout(RUN_DEADLINE_S):
                await stage.run()
            return stage.figures


@contextlib.contextmanager
def _data(template: Template, folder: Path) -> Iterator[tuple[RedisServer, Deployment]]:
    with redis_server() as redis, deployment(template, folder, variables={"CREDENTIAL_KEYS": entry("old")}) as made:
        yield redis, made


def main() -> int:
    """Print the figures; 1 when something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--organizations", type=int, default=300)
    parser.add_argument("--rate", type=float, default=40.0, help="calls a second")
    parser.add_argument("--kills", type=int, default=3)
    asked = parser.parse_args()
    if not is_installed() or not os.environ.get("DATABASE_URL", "").startswith("postgres"):
        parser.error("needs redis-server, and DATABASE_URL with PostgreSQL")
    os.environ.pop("REDIS_URL", None)
    plan = Plan(organizations=asked.organizations, rate=asked.rate, kills=asked.kills)
    with tempfile.TemporaryDirectory(prefix="rotated-keys-") as name:
        template = Template(Path(name))
        try:
            figures = asyncio.run(staged(template, Path(name) / "var", plan))
        finally:
            template.remove()
    print(figures)  # noqa: T201 - the report
    return 0 if figures.holds else 1


if __name__ == "__main__":
    sys.exit(main())

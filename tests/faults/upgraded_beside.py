"""The last release serves while this one is installed beside it: `python -m tests.faults.upgraded_beside`.

[--seconds 20] [--rate 30]

The code of scripts/last_release.toml makes a database and serves calls. This release's migrations are applied
meanwhile. Then the last release goes on for a while, its commands change rows, and this release serves beside it.
Printed are the figures; the exit code is 1 when a call or a change failed, or a revocation by one release was not in
force in the other. Needs DATABASE_URL with PostgreSQL, redis-server, and the commit in this repository. A minute.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.e2e import agent
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, Operator, deployment
from tests.e2e.shared_gateway import keyless_catalog
from tests.fakes.patient_vendor import PatientVendor
from tests.fakes.redis_server import is_installed, redis_server
from tests.fakes.vendor import running_vendor
from tests.faults.rolled import Caller, Plan, sessions
from tests.vendors.processes import ROOT, free_port

LAST_RELEASE = ROOT / "scripts" / "last_release.toml"
IN_FORCE_WITHIN_S = 10.0
NONE_PENDING = "No planned migration operations."


@dataclass
class Figures:
    """Calls by the release that answered, and when."""

    before: Counter[str] = field(default_factory=Counter)
    meanwhile: Counter[str] = field(default_factory=Counter)
    afterwards: Counter[str] = field(default_factory=Counter)
    of_this_release: Counter[str] = field(default_factory=Counter)
    migrations: int = 0
    migrated_s: float = 0.0
    changes: list[str] = field(default_factory=list)  # that commands of the last release made afterwards
    refused_in_both: list[str] = field(default_factory=list)  # by whom an agent key was revoked
    rows: int = 0  # of answered calls

    @property
    def calls(self) -> Counter[str]:
        return self.before + self.meanwhile + self.afterwards + self.of_this_release

    @property
    def holds(self) -> bool:
        each = (self.before, self.meanwhile, self.afterwards, self.of_this_release)
        return (
            all(counted["200"] > 0 and len(counted) == 1 for counted in each)
            and self.migrations > 0
            and len(self.changes) > 0
            and self.refused_in_both == ["the last release", "this release"]
            and self.rows == self.calls["200"]
        )

    def __str__(self) -> str:
        lines = (
            f"{self.migrations} migrations in {self.migrated_s:.1f} s",
            f"the last release: {dict(self.before)} before, {dict(self.meanwhile)} meanwhile,",
            f"{dict(self.afterwards)} with the new schema",
            f"this release beside it: {dict(self.of_this_release)}; rows of {self.rows} calls",
            f"changes by the last release: {', '.join(self.changes)}",
            f"revocations in force in both, by: {', '.join(self.refused_in_both)}",
            "GOOD" if self.holds else "BROKEN",
        )
        return "\n".join(lines)


def commit_of_last_release() -> str:
    commit: str = tomllib.loads(LAST_RELEASE.read_text())["commit"]
    return commit


def has_last_release() -> bool:
    """Whether this copy of the repository has the commit."""
    command = ["git", "cat-file", "-e", f"{commit_of_last_release()}^{{commit}}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def unpack_last_release(folder: Path) -> Path:
    """The folder with its code."""
    archive = folder / "release.tar"
    subprocess.run(["git", "archive", "--output", str(archive), commit_of_last_release()], cwd=ROOT, check=True)
    code = folder / "release"
    with tarfile.open(archive) as packed:
        packed.extractall(code, filter="data")
    return code


@dataclass
class Stage:
    """The same deployment as the last release runs it, and as this one does."""

    last: Deployment
    this: Deployment
    vendor: PatientVendor
    plan: Plan
    figures: Figures
    keys: list[dict[str, Any]] = field(default_factory=list)

    def prepare(self) -> None:
        with self.last.operator() as operator:
            operator.run("load_catalog", text=keyless_catalog("fake", self.vendor.url))
            for name in ("One", "Two"):
                org_id = operator.run("create_organization", name=name)
                operator.run("connect_vendor", org_id=org_id, vendor="fake", fields={})
                self.keys += [operator.run("create_service_client", org_id=org_id, name=f"bot {n}") for n in range(4)]

    async def run(self, seconds: float) -> None:
        with contextlib.ExitStack() as stack:
            old = await asyncio.to_thread(stack.enter_context, self.last.web(port=free_port()))
            serving = [key["agent_key"] for key in self.keys[2:]]
            async with sessions(self.vendor, serving) as caller:
                await self._load(caller, old.origin, self.figures.before, asyncio.sleep(seconds / 4))
                await self._load(caller, old.origin, self.figures.meanwhile, asyncio.to_thread(self._migrate))
                await self._load(caller, old.origin, self.figures.afterwards, asyncio.to_thread(self._change))
                new = await asyncio.to_thread(stack.enter_context, self.this.web(port=free_port()))
                await self._load(caller, old.origin, self.figures.afterwards, asyncio.sleep(seconds / 4))
                await self._load(caller, new.origin, self.figures.of_this_release, asyncio.sleep(seconds / 4))
                for number, (who, by) in enumerate((("the last release", self.last), ("this release", self.this))):
                    if await self._revoked(caller.session, by, self.keys[number], [old.origin, new.origin]):
                        self.figures.refused_in_both.append(who)
        subjects = ", ".join(f"'{key['subject']}'" for key in self.keys[2:])
        sql = f"SELECT count(*) FROM audit_requestauditentry WHERE status = 'success' AND user_id IN ({subjects})"
        self.figures.rows = int(self.this.database.select(sql)[0][0])

    async def _load(self, caller: Caller, origin: str, outcomes: Counter[str], work: Any) -> None:
        """Calls while `work` is done."""
        ended = asyncio.Event()
        load = asyncio.ensure_future(caller.load(origin, self.plan, outcomes, ended))
        try:
            await work
        finally:
            ended.set()
            await load

    def _migrate(self) -> None:
        planned = self.this.manage("migrate", "--plan")
        assert NONE_PENDING not in planned, "both releases have the same schema"
        self.figures.migrations = sum(line[:1].isalpha() and "." in line for line in planned.splitlines()[1:])
        began_s = time.monotonic()
        self.this.manage("migrate", "--no-input", "--verbosity", "0")
        self.figures.migrated_s = time.monotonic() - began_s

    def _change(self) -> None:
        """Rows of all kinds are written by the last release."""
        with self.last.operator() as operator:
            for name, arguments in self._changes(operator):
                operator.run(name, **arguments)
                self.figures.changes.append(name)

    def _changes(self, operator: Operator) -> Iterator[tuple[str, dict[str, Any]]]:
        org_id = operator.run("create_organization", name="Three")
        yield "load_catalog", {"text": keyless_catalog("another", self.vendor.url)}
        yield "connect_vendor", {"org_id": org_id, "vendor": "another", "fields": {}}
        yield "create_service_client", {"org_id": org_id, "name": "made by the last release"}
        yield "create_service_clients", {"org_id": org_id, "count": 3}

    async def _revoked(
        self, session: aiohttp.ClientSession, by: Deployment, key: dict[str, Any], origins: list[str]
    ) -> bool:
        """Both releases know the key, one revokes it, and both refuse it."""
        if [await _status(session, origin, key["agent_key"]) for origin in origins] != [200, 200]:
            return False
        with by.operator() as operator:
            await asyncio.to_thread(operator.run, "revoke_agent_key", client_id=key["client_id"])
        deadline = time.monotonic() + IN_FORCE_WITHIN_S
        while [await _status(session, origin, key["agent_key"]) for origin in origins] != [401, 401]:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.05)
        return True


async def _status(session: aiohttp.ClientSession, origin: str, key: str) -> int:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    async with session.post(f"{origin}/v1/mcp", json=body, headers=agent.bearer(key)) as answer:
        await answer.read()
        return answer.status


async def staged(folder: Path, server_url: str, seconds: float, rate: float) -> Figures:
    """The run on a database and a Redis of its own."""
    code = unpack_last_release(folder)
    template = Template(folder, server_url, code)
    figures = Figures()
    try:
        async with running_vendor(PatientVendor, api_key=None) as vendor:
            assert isinstance(vendor, PatientVendor)
            with redis_server() as redis, deployment(template, folder / "var") as this:
                this.environment["REDIS_URL"] = redis.url
                last = dataclasses.replace(this, code=code)
                stage = Stage(last, this, vendor, Plan(rate=rate, longest_s=1.0), figures)
                await asyncio.to_thread(stage.prepare)
                await stage.run(seconds)
    finally:
        template.remove()
    return figures


def main() -> int:
    """Print the figures; 1 when something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="of calls beside those during the migrations")
    parser.add_argument("--rate", type=float, default=30.0, help="calls a second")
    asked = parser.parse_args()
    server_url = os.environ.get("DATABASE_URL", "")
    if not is_installed() or not server_url.startswith("postgres"):
        parser.error("needs redis-server, and DATABASE_URL with PostgreSQL")
    if not has_last_release():
        parser.error(f"this copy of the repository lacks the commit {commit_of_last_release()}")
    os.environ.pop("REDIS_URL", None)
    with tempfile.TemporaryDirectory(prefix="upgraded-beside-") as folder:
        figures = asyncio.run(staged(Path(folder), server_url, asked.seconds, asked.rate))
    print(figures)  # noqa: T201 - the report
    return 0 if figures.holds else 1


if __name__ == "__main__":
    sys.exit(main())

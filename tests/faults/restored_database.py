"""A database is lost and restored from its backup: `python -m tests.faults.restored_database [--rows 1000000]`.

Two organizations call a vendor. After the backup a key is revoked, a session ends and one organization is deleted. The
backup is restored into an empty database, `after_restore` reads the journal, and the same calls are made. Printed is
the time of each step; the exit code is 1 when an answer is not the expected one. With DATABASE_URL of a PostgreSQL
server it uses pg_dump and pg_restore and databases of its own, which it drops; without one, `backup` and `restore`.
`--rows` fills the request log first.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg

from gateway.supervisor.secret_store import load_secrets
from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.deployment_data import Database, Template
from tests.e2e.gateway_process import Deployment, Operator, deployment
from tests.factories.live_vendor import vendor_in_thread
from tests.faults.upgraded_log import COLUMNS
from tests.vendors.processes import PLAIN_HTTP

CATALOG = """
[[vendor]]
slug = "fake"
name = "Fake"
url = "{url}"
tool_prefix = "fake"
[[vendor.headers]]
name = "X-Api-Key"
value = "{{apiKey}}"
[[vendor.fields]]
name = "apiKey"
label = "API key"
secret = true
required = true
"""
SECRETS = ("SECRET_KEY", "CREDENTIAL_KEYS", "OIDC_RP_CLIENT_SECRET")


@dataclass
class Drill:
    """`seconds` of each step, and what the restored service answered."""

    seconds: dict[str, float] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    unguarded: dict[str, Any] = field(default_factory=dict)  # restored, without after_restore
    after: dict[str, Any] = field(default_factory=dict)
    data_keys: int = 0  # of the deleted organization, at the end
    said: str = ""

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - started, 2)


@dataclass(frozen=True)
class Parties:
    """`kept` and `revoked` are of one organization, `deleted` of the one that is deleted."""

    kept: ServiceClient
    revoked: ServiceClient
    deleted: ServiceClient
    kept_session: str
    ended_session: str


def run(template: Template, folder: Path, *, rows: int = 0) -> Drill:
    """The whole drill, in databases and folders of its own."""
    drill = Drill()
    with (
        vendor_in_thread(api_key="right-key") as vendor,
        deployment(template, folder / "first") as first,
        first.operator() as operator,
    ):
        operator.run("load_catalog", text=CATALOG.format(url=vendor.url))
        parties = _parties(operator)
        if rows:
            _fill_the_log(first.database, parties.kept.org_id, rows)
        with first.web():
            drill.before = _answers(first, parties)
        made_at = datetime.now(UTC).isoformat()
        with drill.step("backup"):
            backup = _backup(first, folder)
        operator.run("revoke_agent_key", client_id=parties.revoked.client_id)
        operator.run("end_session", cookie=parties.ended_session)
        operator.run("delete_organization", org_id=parties.deleted.org_id)
        with _restored(drill, first, backup, folder) as second:
            journal = first.folder / "revocations.jsonl"
            with second.web():
                drill.unguarded = _answers(second, parties)
            with drill.step("after_restore"):
                drill.said = second.manage("after_restore", "--at", made_at, "--journal", str(journal))
            with drill.step("start"), second.web():
                drill.after = _answers(second, parties)
            with second.operator() as restored_operator:
                drill.data_keys = restored_operator.run("data_keys", org_id=parties.deleted.org_id)
                restored_operator.manage("verify_credentials")
    return drill


def faults(drill: Drill) -> list[str]:
    """Each answer that is not the expected one."""
    served = {"kept", "revoked", "deleted", "kept_session", "ended_session"}
    found = [f"before: {name} got {drill.before[name][0]}" for name in served if drill.before[name][0] != 200]
    # Without the command the drill would prove nothing: what ended is let in.
    found += [f"unguarded: {name} got {drill.unguarded[name][0]}" for name in served if drill.unguarded[name][0] != 200]
    if drill.after["kept"] != drill.before["kept"]:
        found.append(f"after: the kept key got {drill.after['kept']}")
    if drill.after["kept_session"][0] != 200:
        found.append("after: the kept session is refused")
    for name in ("revoked", "deleted", "ended_session"):
        if drill.after[name][0] != 401:
            found.append(f"after: {name} got {drill.after[name][0]}")
    if drill.data_keys:
        found.append("after: the deleted organization's credentials open")
    return found


def _parties(operator: Operator) -> Parties:
    kept, deleted = (operator.run("create_organization", name=name) for name in ("Kept", "Deleted"))
    for org_id in (kept, deleted):
        operator.run("connect_vendor", org_id=org_id, vendor="fake", fields={"apiKey": "right-key"})

    def client(org_id: str, name: str) -> ServiceClient:
        return ServiceClient(org_id=org_id, **operator.run("create_service_client", org_id=org_id, name=name))

    return Parties(
        kept=client(kept, "kept"),
        revoked=client(kept, "revoked"),
        deleted=client(deleted, "deleted"),
        kept_session=operator.run("sign_in_owner", org_id=kept),
        ended_session=operator.run("sign_in_owner", org_id=kept),
    )


def _answers(place: Deployment, parties: Parties) -> dict[str, Any]:
    """Status and result by party; results only of calls."""
    found: dict[str, Any] = {}
    with _client(place) as client:
        for name in ("kept", "revoked", "deleted"):
            answer = agent.call(client, getattr(parties, name).agent_key, "fake_list", mark="drill")
            found[name] = (answer.status_code, answer.json().get("result") if answer.status_code == 200 else None)
        for name in ("kept_session", "ended_session"):
            cookie = f"gateway_session={getattr(parties, name)}"
            found[name] = (client.get("/api/orgs", headers={"Cookie": cookie}).status_code, None)
    return found


@contextlib.contextmanager
def _client(place: Deployment) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=place.origin, **PLAIN_HTTP, timeout=30.0) as client:
        yield client


def _backup(first: Deployment, folder: Path) -> Path:
    if first.database.is_sqlite:
        first.manage("backup", str(folder / "backup.tar"))
        return folder / "backup.tar"
    _tool("pg_dump", "--format=custom", f"--file={folder / 'backup.dump'}", f"--dbname={first.database.url}")
    return folder / "backup.dump"


@contextlib.contextmanager
def _restored(drill: Drill, first: Deployment, backup: Path, folder: Path) -> Iterator[Deployment]:
    """A deployment on an empty database that got the backup."""
    place = folder / "second"
    if first.database.is_sqlite:
        environment = {name: value for name, value in first.environment.items() if name not in SECRETS}
        environment |= {"VAR": str(place), "DATABASE_URL": ""}
        bare = replace(first, environment=environment | {"GATEWAY_ROLE": "helper"})
        with drill.step("restore"):
            bare.manage("restore", str(backup))
        # The keys are those of the file: nothing of the first folder is read.
        secrets = load_secrets(place, {}, has_database=True)
        (place / "logs").mkdir()
        database = Database(f"sqlite:///{place / 'gateway.sqlite3'}")
        yield replace(first, folder=place, database=database, environment=environment | secrets, secrets=secrets)
        return
    (place / "logs").mkdir(parents=True)
    name = f"gateway_e2e_{uuid.uuid4().hex[:12]}"
    server = urlsplit(first.database.url)._replace(path="/postgres").geturl()
    database = Database(urlsplit(first.database.url)._replace(path=f"/{name}").geturl())
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0'.encode())
        try:
            with drill.step("restore"):
                _tool("pg_restore", "--exit-on-error", f"--dbname={database.url}", str(backup))
            environment = {**first.environment, "VAR": str(place), "DATABASE_URL": database.url}
            yield replace(first, folder=place, database=database, environment=environment)
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def _fill_the_log(database: Database, org_id: str, rows: int) -> None:
    values = (
        "(lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0') || '7000a000' || lpad(to_hex(n), 12, '0'))"
        f"::uuid, now(), '{org_id}'::uuid, 'u', 'Ana', 'fake', 'fake_list', 'mcp', 'success', '', 5, 4, 'org', '',"
        " false, 'client', 'Client', '127.0.0.1', gen_random_uuid()::text, 100, 100"
    )
    with psycopg.connect(database.url, autocommit=True) as connection:
        statement = f"INSERT INTO audit_requestauditentry ({COLUMNS}) SELECT {values} FROM generate_series(1, {rows}) n"
        connection.execute(statement.encode())


def _tool(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def main() -> int:
    """Exit code 1 when an answer is not the expected one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=0, help="rows of the request log; PostgreSQL only")
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory(prefix="gateway-drill-") as name:
        folder = Path(name)
        (folder / "template").mkdir()
        template = Template(folder / "template")
        try:
            drill = run(template, folder, rows=rows)
        finally:
            template.remove()
    sys.stdout.write(drill.said)
    for step, seconds in drill.seconds.items():
        sys.stdout.write(f"{step}: {seconds} s\n")
    found = faults(drill)
    sys.stdout.write("".join(f"{fault}\n" for fault in found) or "Every answer was the expected one.\n")
    return 1 if found else 0


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    sys.exit(main())

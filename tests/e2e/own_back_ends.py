"""A gateway with one vendor and one agent on back ends that a test brings along."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from gateway.container.entrypoint import role_command
from tests.e2e import agent
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import OPERATION_DEADLINE_S, Deployment, Program, Web, deployment
from tests.e2e.shared_gateway import acme_catalog
from tests.vendors.servers import DemoVendor, demo_vendor_server

Verdicts = dict[str, list[tuple[str, str]]]


@dataclass
class Installation:
    made: Deployment
    client: dict[str, str]

    def call(self, web: Web, key: str | None = None) -> int:
        """The status of one call that writes a row of the log."""
        with web.client() as client:
            return agent.call(client, key or self.client["agent_key"], "acme_whoami").status_code

    def calls(self, web: Web, count: int) -> Counter[int]:
        return Counter(self.call(web) for _ in range(count))

    def doctor(self, **environment: str) -> Verdicts:
        """(status, message) of each verdict, by check."""
        done = subprocess.run(
            [sys.executable, "manage.py", "doctor", "--json"],
            cwd=self.made.code,
            env={**self.made.environment, **environment},
            capture_output=True,
            text=True,
            timeout=OPERATION_DEADLINE_S,
        )
        found: Verdicts = {}
        for verdict in json.loads(done.stdout):
            found.setdefault(verdict["check"], []).append((verdict["status"], verdict["message"]))
        return found

    @contextlib.contextmanager
    def worker(self, **environment: str) -> Iterator[Program]:
        command = role_command("worker", ["--concurrency", "1"], self.made.environment)
        with self.made._started("worker", command, environment) as (process, log_path):
            yield Program(process, log_path)


@contextlib.contextmanager
def on_back_ends(
    folder: Path, server_url: str = "", variables: Mapping[str, str] | None = None, *, pooler_port: int | None = None
) -> Iterator[Installation]:
    """`server_url`: of a PostgreSQL server, which `pooler_port` stands before; else SQLite. `variables` win."""
    (folder / "template").mkdir(parents=True)
    template = Template(folder / "template", server_url)
    with contextlib.ExitStack() as stack:
        stack.callback(template.remove)
        vendor: DemoVendor = stack.enter_context(demo_vendor_server())
        made = stack.enter_context(deployment(template, folder / "var"))
        made.environment.update({"ALLOW_PRIVATE_ENDPOINTS": "1", **(variables or {})})
        made.environment["DJANGO_SETTINGS_MODULE"] = "gateway.settings"
        if pooler_port is not None:
            parts = urlsplit(made.database.url)
            made.environment["DATABASE_URL"] = parts._replace(
                netloc=f"{parts.username}@127.0.0.1:{pooler_port}"
            ).geturl()
        with made.operator() as operator:
            operator.run("load_catalog", text=acme_catalog(vendor))
            org_id = operator.run("create_organization", name="Org")
            operator.run("connect_vendor", org_id=org_id, vendor="acme", fields={"apiKey": vendor.new_api_key()})
            client = operator.run("create_service_client", org_id=org_id, name="bot")
        yield Installation(made, client)


def coordination_of(web: Web) -> str:
    """As /ready says."""
    with contextlib.suppress(httpx.TransportError), web.client() as client:
        return str(client.get("/ready").json()["checks"]["coordination"])
    return "no answer"

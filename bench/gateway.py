"""The product itself, as `make run` starts its web server, on data of its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from bench import targets
from bench.databases import BackEnds
from bench.placement import Placement
from bench.preparation import catalog, kept_tool, listed_catalog
from bench.processes import (
    HOST,
    STOP_TIMEOUT_S,
    Processes,
    free_port,
    inherited_environment,
    python_module,
    wait_until_serving,
    web_server,
)
from bench.stage import START_TIMEOUT_S, VendorServer, ask
from bench.targets import Target
from gateway.supervisor.child_environment import service_environment
from gateway.supervisor.options import Options
from gateway.supervisor.secret_store import load_secrets

PREPARATION_TIMEOUT_S = 120.0
# A limit that the run cannot reach. The limiter itself works as ever: it is part of every call.
LIMITS = {"TOOL_CALLS_PER_HOUR": "10000000", "REQUESTS_PER_MINUTE": "10000000"}


class GatewayServer:
    """A gateway with organizations, clients and a connected vendor; `pid` is its web process."""

    def __init__(
        self,
        processes: Processes,
        placement: Placement,
        vendor: VendorServer,
        back_ends: BackEnds,
        folder: Path,
        *,
        lists: bool = False,
    ) -> None:
        """`lists`: also an organization for targets.MCP_LIST."""
        self._processes, self._placement = processes, placement
        self.port = free_port()
        self.base_url = f"http://{HOST}:{self.port}"
        self.environment = gateway_environment(self.port, folder, back_ends.environment) | kept_tool()
        clients, list_clients = self._prepare(vendor, back_ends, folder, lists=lists)
        process = processes.start(
            "gateway",
            web_server("gateway.asgi:application", self.port),
            environment=self.environment,
            cores=placement.target,
        )
        self.pid = process.pid
        wait_until_serving(process, self.port, "/health", timeout_s=START_TIMEOUT_S)
        self._list_keys = [client["agent_key"] for client in list_clients]
        self._agent_keys = [client["agent_key"] for client in clients]
        self._tokens = [self._token(client["client_id"], client["client_secret"]) for client in clients]

    def target(self, name: str) -> Target:
        """One route with one kind of bearer."""
        if name == targets.MCP_LIST:
            requests = targets.list_requests(self._list_keys)
            return Target(name, self.port, self.pid, requests, [targets.list_mark()] * len(requests))
        requests = targets.gateway_requests(name, self._agent_keys, self._tokens)
        return Target(name, self.port, self.pid, requests, targets.marks())

    def audit_rows(self) -> dict[str, int]:
        """Rows of the call log by route and ending, read while the gateway runs: an answer's row is there before it."""
        rows: dict[str, int] = self._step("count")["rows"]
        return rows

    def _prepare(
        self, vendor: VendorServer, back_ends: BackEnds, folder: Path, *, lists: bool
    ) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
        file, listed = folder / "bench-vendor.toml", folder / "listed-vendors.toml"
        file.write_text(catalog(vendor.url), encoding="utf-8")
        arguments = ["--catalog", str(file), f"--vendor-key={vendor.key}"]
        if lists:
            listed.write_text(listed_catalog(vendor.url), encoding="utf-8")
            arguments += ["--catalog", str(listed), "--lists"]
        made = self._step("prepare", *arguments)
        back_ends.own_ids = tuple(made["own_ids"])
        return made["clients"], made["list_clients"]

    def _step(self, *arguments: str) -> dict[str, Any]:
        process = self._processes.start(
            f"preparation-{arguments[0]}",
            python_module("bench.preparation", *arguments),
            environment=self.environment,
            cores=self._placement.others,
            talks=True,
        )
        answer: dict[str, Any] = json.loads(process.read_line(timeout_s=PREPARATION_TIMEOUT_S))
        process.wait(timeout_s=START_TIMEOUT_S)
        return answer

    def _token(self, client_id: str, client_secret: str) -> str:
        basic = base64.b64encode(f"{client_id}:{client_secret}".encode()).decode()
        headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/x-www-form-urlencoded"}
        form = urlencode(
            {"grant_type": "client_credentials", "scope": "mcp:all", "resource": f"{self.base_url}/v1/mcp"}
        )
        _, _, content = ask(self.port, "POST", "/oauth/token", form, headers)
        token: str = json.loads(content)["access_token"]
        return token


def gateway_environment(port: int, folder: Path, back_ends: Mapping[str, str]) -> dict[str, str]:
    """The environment that `make run DEMO=0` would give the web server, with limits out of reach."""
    options = Options(
        port=port,
        idp_port=0,
        vendor_port=0,
        host=HOST,
        var=folder,
        catalog=None,
        demo=False,
        base_url=f"http://{HOST}:{port}",
        web_processes=1,
        has_redis="REDIS_URL" in back_ends,
        has_own_provider=False,
        stop_s=round(STOP_TIMEOUT_S),
    )
    environ = {**inherited_environment(), **LIMITS, **back_ends, "LOG_LEVEL": "WARNING"}
    return service_environment(options, environ, load_secrets(folder, environ, has_database=False))

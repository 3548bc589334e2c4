"""Everything that a measurement needs, up and serving: vendor, pass-through, gateway, load generator."""

from __future__ import annotations

import http.client
import json
import secrets
from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from bench import targets
from bench.connection import DRAIN_TIMEOUT_S
from bench.load import Job, Outcome
from bench.placement import Placement
from bench.processes import (
    HOST,
    BenchFailed,
    Process,
    Processes,
    free_port,
    python_module,
    wait_until_serving,
    web_server,
)
from bench.targets import Target
from bench.vendor import KEY_HEADER, SESSION_HEADER
from bench.vendor_answers import PROTOCOL_VERSION

START_TIMEOUT_S = 30.0
ANSWER_TIMEOUT_S = 10.0


class VendorServer:
    """The stand-in vendor and what its clients must know."""

    def __init__(self, processes: Processes, placement: Placement) -> None:
        self.key = secrets.token_urlsafe(24)
        command = python_module("bench.vendor", f"--key={self.key}")  # it may begin with a dash
        self.process = processes.start("vendor", command, cores=placement.others, talks=True)
        self.port: int = json.loads(self.process.read_line(timeout_s=START_TIMEOUT_S))["port"]

    @property
    def url(self) -> str:
        """Its MCP address."""
        return f"http://{HOST}:{self.port}/mcp"

    def set(self, delay_ms: int, form: str) -> None:
        """Delay and form of its answers from now on."""
        ask(self.port, "GET", f"/_set?{urlencode({'delay_ms': delay_ms, 'form': form})}", expected=204)

    def posts(self) -> int:
        """How many requests it has seen."""
        _, _, body = ask(self.port, "GET", "/_stats")
        posts: int = json.loads(body).get("posts", 0)
        return posts

    def open_session(self) -> str:
        """The id of a new session, for who speaks to it without a gateway."""
        headers = {KEY_HEADER.decode(): self.key, "Content-Type": "application/json"}
        body = json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 0,
                "method": "initialize",
                "params": {
                    "protocolVersion": PROTOCOL_VERSION,
                    "capabilities": {},
                    "clientInfo": {"name": "bench", "version": "1"},
                },
            }
        )
        _, found, _ = ask(self.port, "POST", "/mcp", body, headers)
        return found[SESSION_HEADER.decode()]

    def direct(self, session_id: str) -> Target:
        """The vendor itself as a target."""
        return Target(targets.DIRECT, self.port, None, targets.vendor_requests(self.key, session_id), targets.marks())


def start_pass_through(processes: Processes, placement: Placement, vendor: VendorServer, session_id: str) -> Target:
    """The bare proxy before the vendor, serving."""
    port = free_port()
    process = processes.start(
        "passthrough",
        web_server("bench.passthrough:application", port),
        environment={"VENDOR_URL": vendor.url},
        cores=placement.target,
    )
    # The vendor refuses a request without its key: that answer came all the way.
    wait_until_serving(process, port, "/", timeout_s=START_TIMEOUT_S, expected=401)
    requests = targets.vendor_requests(vendor.key, session_id)
    return Target(targets.PASS_THROUGH, port, process.pid, requests, targets.marks())


class LoadGenerator:
    """The process that sends load; one job at a time."""

    def __init__(self, processes: Processes, placement: Placement) -> None:
        self._process: Process = processes.start(
            "load", python_module("bench.load"), cores=placement.others, talks=True
        )

    def run(
        self, target: Target, *, connections: int, warm_up_s: float, measure_s: float, meters: Mapping[str, int]
    ) -> Outcome:
        """A target's requests for so many seconds. Raises: BenchFailed."""
        job = Job(
            host=HOST,
            port=target.port,
            requests=list(target.requests),
            marks=list(target.marks),
            connections=connections,
            warm_up_s=warm_up_s,
            measure_s=measure_s,
            meters=dict(meters),
        )
        return self.run_job(job, f"{target.name}, {connections} connections")

    def run_job(self, job: Job, described: str) -> Outcome:
        """The outcome of one job. Raises: BenchFailed, with `described` in its message."""
        self._process.stdin.write(msgspec.json.encode(job) + b"\n")
        self._process.stdin.flush()
        answer = self._process.read_line(timeout_s=job.warm_up_s + job.measure_s + DRAIN_TIMEOUT_S + START_TIMEOUT_S)
        try:
            return msgspec.json.decode(answer, type=Outcome)
        except msgspec.ValidationError:
            raise BenchFailed(f"{described}: {answer.decode().strip()}") from None


def ask(
    port: int,
    method: str,
    path: str,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    expected: int = 200,
) -> tuple[int, dict[str, str], bytes]:
    """One request outside any measurement: status, headers by lower-case name, body.

    Raises: BenchFailed for another status than the expected one, or no answer.
    """
    connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_TIMEOUT_S)
    try:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        content = response.read()
    except (OSError, http.client.HTTPException) as fault:
        raise BenchFailed(f"{method} {path}: {type(fault).__name__}") from None
    finally:
        connection.close()
    if response.status != expected:
        raise BenchFailed(f"{method} {path}: HTTP {response.status} {content[:300]!r}")
    return response.status, {name.lower(): value for name, value in response.getheaders()}, content

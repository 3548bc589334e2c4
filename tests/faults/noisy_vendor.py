"""How much one vendor in trouble costs the callers of another: `python -m tests.faults.noisy_vendor [--calls 500]`.

A report, not a test: its figures are those of this machine at this moment. For each kind of trouble, quiet and troubled
rounds take turns, and what is compared is the median of their 99th percentiles. The goal is less than 20 % more than
the first row says, where as many calls go to a vendor without trouble.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import targets
from bench.databases import back_ends
from bench.gateway import GatewayServer
from bench.load import Outcome
from bench.placement import Placement
from bench.processes import HOST, Processes, python_module
from bench.stage import START_TIMEOUT_S, LoadGenerator, VendorServer
from bench.targets import Target

ROOT = Path(__file__).resolve().parents[2]
TROUBLES = ("", "never_answers", "refused", "says_503", "drips", "a_flood_of_events", "a_gzip_bomb")
EACH_AT_LEAST_S = 1.0  # one caller's call and the pause behind it
CATALOG = """
[[vendor]]
slug = "noisy-{number}"
name = "Noisy {number}"
url = "{url}"
docs_url = "https://vendor.example/docs"
timeout_seconds = 10
"""


def say(text: str) -> None:
    """One line, now."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def serve() -> None:
    """Hostile vendors, one for each trouble, until standard input ends; their addresses are one line of JSON."""
    from contextlib import AsyncExitStack

    from tests.fakes.hostile_vendor import hostile_vendor

    async with AsyncExitStack() as stack:
        urls = []
        for trouble in TROUBLES:
            vendor = await stack.enter_async_context(hostile_vendor())
            vendor.fault = "" if trouble == "refused" else trouble  # the first answers as it should
            urls.append(f"http://{HOST}:9/mcp" if trouble == "refused" else vendor.url)
        say(json.dumps(urls))
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def connect(urls: list[str]) -> None:
    """Every organization is connected to every noisy vendor. In the gateway's environment."""
    from gateway.supervisor.preparation import load_settings

    load_settings()
    from credentials.credential_scope import CredentialScope
    from credentials.services.credentials import store_credential
    from gateway.catalog import registry
    from orgs.models import Organization, User
    from tests.factories.catalog_text import load_catalog

    load_catalog("".join(CATALOG.format(number=n, url=url) for n, url in enumerate(urls)), "noisy vendors")
    owner = User.objects.get(email="owner@bench.example")
    for number in range(len(urls)):
        vendor = registry.load().get(f"noisy-{number}")
        assert vendor is not None
        for organization in Organization.objects.all():
            store_credential(
                actor=owner, organization=organization, vendor=vendor, scope=CredentialScope.ORGANIZATION, fields={}
            )
    say("{}")


def make_noise(port: int, keys: list[str], number: int, calls: int, ready: Any, stop: Any) -> None:
    """`calls` callers at one noisy vendor, each again after its answer, though not more often than once a second."""

    async def caller(key: str) -> None:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        body |= {"params": {"name": f"noisy_{number}_fake_write", "arguments": {}}}
        headers = {"Authorization": f"Bearer {key}", "Connection": "close"}
        request = targets.http_request("/v1/mcp", headers, json.dumps(body).encode())
        while True:
            begun_s = time.monotonic()
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(request)
            await reader.read()
            writer.close()
            await asyncio.sleep(max(0.0, begun_s + EACH_AT_LEAST_S - time.monotonic()))

    async def noise() -> None:
        tasks = []
        for index in range(calls):
            tasks.append(asyncio.ensure_future(caller(keys[index % len(keys)])))
            await asyncio.sleep(EACH_AT_LEAST_S / calls)
        ready.set()
        await asyncio.to_thread(stop.wait)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(noise())


def noisy_round(gateway: GatewayServer, number: int, calls: int, measure: Any) -> Outcome:
    """The answers of the quiet vendor while the other one is in trouble."""
    context = multiprocessing.get_context("spawn")
    ready, stop = context.Event(), context.Event()
    arguments = (gateway.port, gateway._agent_keys, number, calls, ready, stop)
    process = context.Process(target=make_noise, args=arguments)
    process.start()
    try:
        ready.wait(START_TIMEOUT_S)
        outcome: Outcome = measure()
    finally:
        stop.set()
        process.join(START_TIMEOUT_S)
        process.kill()
    return outcome


def report(options: argparse.Namespace, folder: Path) -> None:
    """Measure and print."""
    placement = Placement()
    with back_ends(os.environ) as found, Processes(ROOT, folder) as processes:
        quiet = VendorServer(processes, placement)
        load = LoadGenerator(processes, placement)
        gateway = GatewayServer(processes, placement, quiet, found, folder)
        quiet.set(5, "json")
        hostile = processes.start("hostile", python_module("tests.faults.noisy_vendor", "--serve"), talks=True)
        urls = hostile.read_line(timeout_s=START_TIMEOUT_S).decode()
        connecting = processes.start(
            "connect",
            python_module("tests.faults.noisy_vendor", "--connect", urls),
            environment=gateway.environment,
            talks=True,
        )
        connecting.read_line(timeout_s=START_TIMEOUT_S)
        requests = targets.gateway_requests(targets.MCP_KEY, gateway._agent_keys, [])
        target = Target("quiet", gateway.port, gateway.pid, requests, targets.marks())

        def measure() -> Outcome:
            return load.run(target, connections=8, warm_up_s=1, measure_s=options.seconds, meters={})

        say(f"{found.description}; 8 callers of a vendor that takes 5 ms; {options.calls} callers of the other one\n")
        say(f"{'trouble':<18} {'quiet p50/p99':>16} {'troubled p50/p99':>18} {'p99':>7}  calls/s quiet, troubled; bad")
        measure()
        for number, trouble in enumerate(TROUBLES):
            if options.only and trouble not in options.only:
                continue
            rounds = [(measure(), noisy_round(gateway, number, options.calls, measure)) for _ in range(options.rounds)]
            say(line(trouble, [one for one, _ in rounds], [one for _, one in rounds]))


def line(trouble: str, quiet: list[Outcome], troubled: list[Outcome]) -> str:
    """One row of the report."""
    sides = [
        [statistics.median(getattr(one, name) for one in side) for name in ("p50_ms", "p99_ms")]
        for side in (quiet, troubled)
    ]
    rates = [statistics.median(one.good / one.seconds for one in side) for side in (quiet, troubled)]
    more = 100 * (sides[1][1] / sides[0][1] - 1)
    return (
        f"{trouble or '(none)':<18} {sides[0][0]:>7.1f}/{sides[0][1]:>5.1f} ms"
        f" {sides[1][0]:>9.1f}/{sides[1][1]:>5.1f} ms"
        f" {more:>+6.0f}%  {rates[0]:.0f}, {rates[1]:.0f}; {sum(one.bad for one in troubled)}"
    )


def main() -> int:
    """Do what is asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.noisy_vendor")
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--only", nargs="*", choices=TROUBLES, help="these troubles; all without it")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--connect", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
    elif options.connect:
        connect(json.loads(options.connect))
    else:
        with tempfile.TemporaryDirectory(prefix="gateway-noisy-") as name:
            report(options, Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())

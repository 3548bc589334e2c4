"""Rows of the fault matrix that have a stage of their own: their short forms, on servers of the same run."""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.e2e.deployment_data import Template
from tests.fakes.postgresql_server import binaries
from tests.faults import rolled
from tests.faults.matrix_stage import Stage
from tests.faults.matrix_table import row
from tests.faults.shipping_killed import on_own_servers


@row("web processes replaced under load", "no call fails", is_long=True)
def processes_replaced(on: Stage) -> None:
    plan = rolled.Plan(
        replacements=2,
        rate=10,
        longest_s=2.0,
        delay_s=1,
        idle_posts=20,
        idle_s=1.0,
        redis_away_s=3.0,
        through_nginx=False,  # the program itself is asked with it
    )
    with TemporaryDirectory(prefix="matrix-rolled-") as name:
        folder = Path(name)
        template = Template(folder, on.postgresql.url)
        figures = asyncio.run(rolled.staged(template, folder / "var", plan))
        template.remove()
    assert figures.holds, str(figures)


@row("destination, worker, schedule, Redis, PostgreSQL killed in mid-delivery", "every record arrives", is_long=True)
def shipping_killed(on: Stage) -> None:
    programs = binaries()
    assert programs is not None
    options = argparse.Namespace(kills=1, rate=100.0, seed=time.monotonic_ns() % 1_000, claim_seconds=1.0)
    with TemporaryDirectory(prefix="matrix-shipping-") as name:
        figures = on_own_servers(Path(name), programs, options)
    assert figures.holds, str(figures)

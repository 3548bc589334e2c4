"""Log shipping while worker, receivers and Redis are killed. The short form of `tests.faults.shipping_killed`."""

from __future__ import annotations

import os
import random
from pathlib import Path

import psutil
import pytest

from gateway.lib.queues import SHIPPING_NICENESS
from tests.factories.until import until_true
from tests.fakes.redis_server import is_installed, redis_server
from tests.faults.scratch_database import BACKENDS, NewScratch
from tests.faults.shipping_killed import RECEIVER, REDIS, WORKER, Run
from tests.faults.shipping_stage import service_variables, stage

pytest_plugins = ("tests.faults.fixtures",)


def shipping_worker() -> psutil.Process:
    found = (each for each in psutil.Process().children(recursive=True) if "shipping@%h" in each.cmdline())
    return max(found, key=lambda each: each.create_time())


@pytest.mark.skipif(not is_installed(), reason="needs redis-server: other runs would take the messages of a shared one")
def test_every_record_arrives_in_order(new_scratch: NewScratch, tmp_path: Path) -> None:
    with new_scratch(BACKENDS[-1], tmp_path) as database, redis_server() as redis:
        environment = service_variables(tmp_path / "var", database.url, redis.url)
        with stage(tmp_path / "var", environment, database.connect, rate=200) as on:
            run = Run(on, {REDIS: redis}, random.Random(18), claim_s=0.5)
            figures = run.play({WORKER: 1, RECEIVER: 3, REDIS: 1})
            until_true(lambda: shipping_worker().nice() == os.nice(0) + SHIPPING_NICENESS)
            log = on.worker.log.read_text()
    assert figures.holds, str(figures)
    assert "Unrecoverable" not in log, "the worker goes on when Redis is back"

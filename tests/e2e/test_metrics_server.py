"""The program behind METRICS_ADDRESS, as `make run` starts it: one answer for all processes, for any Host."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gateway.lib.metrics import figures, names
from gateway.lib.metrics.process_file import ProcessFile
from gateway.supervisor.services import metrics_command
from tests.factories.figures import value_of
from tests.factories.until import until_true
from tests.vendors.processes import free_port

pytestmark = pytest.mark.one_back_end


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Of a running program, without a database: it has no migration to read."""
    found = f"127.0.0.1:{free_port()}"
    unset = {"DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {
        "GATEWAY_MODE": "embedded",
        "GATEWAY_ROLE": "helper",
        "VAR": str(tmp_path),
        "METRICS_ADDRESS": found,
        "LOG_LEVEL": "INFO",  # says when it serves
    }
    process = subprocess.Popen(metrics_command(), env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        lines = iter(process.stderr.readline, "")
        assert any("metrics.serving" in line for line in lines)
        yield found
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0
        process.stderr.close()


def test_it_answers_for_two_processes_and_any_host(address: str, tmp_path: Path) -> None:
    figures.reset_all()
    names.CALLS.add("acme", "cli", "success", amount=3)
    for role in ("web", "worker"):
        ProcessFile(tmp_path / "metrics", role).write()
    figures.reset_all()

    def scrape() -> str:
        answer = httpx.get(f"http://{address}/metrics", headers={"Host": "10.0.0.7"}, timeout=10)
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("text/plain")
        return answer.text

    text = scrape()
    assert value_of(text, "gateway_calls_total", vendor="acme", route="cli", outcome="success") == 6
    assert [value_of(text, "gateway_processes", role=role) for role in ("web", "worker", "shipping")] == [1, 1, 0]
    # A database without tables answers no lag.
    until_true(lambda: value_of(scrape(), "gateway_database_up") == 0)


def test_without_an_address_it_does_not_start(tmp_path: Path) -> None:
    environment = {**os.environ, "GATEWAY_MODE": "embedded", "GATEWAY_ROLE": "helper", "VAR": str(tmp_path)}
    environment.pop("METRICS_ADDRESS", None)
    environment["DJANGO_SETTINGS_MODULE"] = "gateway.settings"
    done = subprocess.run(
        [sys.executable, "-m", "gateway.metrics_server"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 78
    assert "METRICS_ADDRESS is not set" in done.stderr

"""A real Prometheus with the shipped rules that scrapes one address of this computer, where it is installed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.vendors.processes import PLAIN_HTTP, ROOT, TETHER, free_port, stop

RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
START_DEADLINE_S = 60.0


def is_installed() -> bool:
    return shutil.which("prometheus") is not None


@dataclass
class Prometheus:
    origin: str
    _client: httpx.Client

    def is_true(self, expression: str) -> bool:
        """Whether an alert with this expression is pending or fires now."""
        return bool(self._ask("/api/v1/query", query=expression)["result"])

    def alerts(self) -> dict[str, str]:
        """The expression of each alert, as Prometheus has read it."""
        groups = self._ask("/api/v1/rules")["groups"]
        return {rule["name"]: rule["query"] for group in groups for rule in group["rules"]}

    def _ask(self, path: str, **query: str) -> Any:
        answer = self._client.get(path, params=query)
        answer.raise_for_status()
        said = answer.json()
        assert said["status"] == "success", said
        return said["data"]


@contextlib.contextmanager
def prometheus(folder: Path, target: str, *, scrape_s: int) -> Iterator[Prometheus]:
    """It has read the rules. `target`: host and port."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    configuration = {
        "global": {"scrape_interval": f"{scrape_s}s", "scrape_timeout": f"{scrape_s}s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "gateway", "static_configs": [{"targets": [target]}]}],
    }
    file = folder / "prometheus.yaml"
    file.write_text(json.dumps(configuration))  # JSON is YAML
    command = ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30.0, **PLAIN_HTTP) as client:
            deadline = time.monotonic() + START_DEADLINE_S
            while not _is_ready(client):
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline, (folder / "log").read_text()
                time.sleep(0.05)
            yield Prometheus(f"http://127.0.0.1:{port}", client)
    finally:
        stop(process)


def _is_ready(client: httpx.Client) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return client.get("/-/ready").status_code == 200
    return False

"""A nats-server of a run's own, which can be killed and started again on what it has stored."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import time
import uuid
from pathlib import Path

from bench.jetstream import wait_until_serving
from bench.placement import Placement
from bench.processes import HOST, Processes, free_port

SYNC = {"default": "2m", "always": "always"}  # how often its files are synced; the first is nats-server's own


class Broker:
    """A nats-server with a folder of its own."""

    def __init__(self, processes: Processes, placement: Placement, program: str, folder: Path, sync: str) -> None:
        self._processes, self._placement, self._sync = processes, placement, sync
        self._program, self._folder, self.port = program, folder, free_port()
        folder.mkdir()
        file = folder / "server.conf"
        file.write_text(
            f'listen: "{HOST}:{self.port}"\n'
            f'jetstream {{ store_dir: "{folder / "store"}", sync_interval: "{SYNC[sync]}" }}\n'
        )
        self._command = (program, "-c", str(file))
        self.start()
        with contextlib.closing(wait_until_serving(self.port)) as connection:
            connection.make_stream()

    def start(self) -> None:
        self._process = self._processes.start(f"broker-{self._sync}", self._command, cores=self._placement.others)

    @property
    def name(self) -> str:
        return f"JetStream, sync {self._sync}"

    def kill_and_start(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        while self._process.exit_code() is None:
            time.sleep(0.01)
        self.start()
        wait_until_serving(self.port).close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def row_ids(self) -> list[uuid.UUID]:
        """The ids of all rows in the stream, in its order, each as often as it is there."""
        with contextlib.closing(wait_until_serving(self.port)) as connection:
            batches = [json.loads(base64.b64decode(stored["data"])) for stored in connection.stored()]
        return [uuid.UUID(row["id"]) for batch in batches for row in batch]

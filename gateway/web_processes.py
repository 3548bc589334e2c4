"""Several web processes at one port: `python -m gateway.web_processes`, with the arguments of uvicorn.

uvicorn's parent process looks at signals twice a second, and keeps the listener open until its last process has ended:
connections that nothing serves would be accepted.   docs/decisions/0079
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
from types import FrameType

from uvicorn.config import Config
from uvicorn.supervisors.multiprocess import Multiprocess


class WebProcesses(Multiprocess):
    def __init__(self, config: Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        signal.signal(signal.SIGTERM, self._pass_on)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        """Each process gets the signal at once, and a second time from `terminate_all`, which changes nothing."""
        for process in self.processes:
            if process.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, number)
        self.signal_queue.append(number)

    def terminate_all(self) -> None:
        super().terminate_all()
        for listener in self.sockets:
            listener.close()


def main() -> None:
    program = importlib.import_module("uvicorn.main")
    program.Multiprocess = WebProcesses  # type: ignore[attr-defined]
    program.main()


if __name__ == "__main__":
    main()

"""`python -m gateway.metrics_server`: answers Prometheus at METRICS_ADDRESS until SIGTERM. Any Host. Contract: 7"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")

import django

django.setup()

import structlog  # noqa: E402
from django.conf import settings  # noqa: E402
from prometheus_client import start_http_server  # noqa: E402

from gateway.lib import build_info  # noqa: E402
from gateway.lib.addresses import split_address  # noqa: E402
from gateway.lib.metrics.process_file import remove_ended  # noqa: E402
from gateway.metrics_server.deployment import read_deployment  # noqa: E402
from gateway.metrics_server.host import HostFigures, registry_of  # noqa: E402
from gateway.metrics_server.identity_provider import read_identity_provider  # noqa: E402
from gateway.metrics_server.rounds import Rounds  # noqa: E402

log = structlog.get_logger("gateway.metrics_server")


def main() -> int:
    address = split_address(settings.METRICS_ADDRESS)
    if address is None:
        sys.stderr.write("Cannot start: METRICS_ADDRESS is not set.\n")
        return 78
    remove_ended(settings.METRICS_FOLDER)
    # Each in a thread of its own: a database that does not answer delays no word about the provider.
    rounds = [Rounds("deployment", read_deployment), Rounds("identity-provider", read_identity_provider)]
    for each in rounds:
        each.start()
    server, _ = start_http_server(address[1], address[0], registry_of(HostFigures(settings.METRICS_FOLDER), *rounds))
    log.info("metrics.serving", address=settings.METRICS_ADDRESS, **build_info.current().labels())
    wait_for_stop()
    server.shutdown()
    for each in rounds:
        each.end()
    return 0


def wait_for_stop() -> None:
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    stopping.wait()


if __name__ == "__main__":
    sys.exit(main())

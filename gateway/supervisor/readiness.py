"""Readiness of a started program: an HTTP request that bypasses proxies, or a file."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

from gateway.supervisor.processes import Service

ANSWER_TIMEOUT_S = 5.0


def is_ready(service: Service) -> bool:
    """A program without ready address and ready file is ready once started."""
    if service.ready_url is not None:
        return answers_ok(service.ready_url, host_header=service.ready_host)
    return service.ready_file is None or service.ready_file.exists()


def answers_ok(url: str, *, host_header: str | None = None) -> bool:
    """Whether GET answers 200 within ANSWER_TIMEOUT_S, with `host_header` for a service that checks its host name."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ANSWER_TIMEOUT_S)
    try:
        connection.request("GET", parts.path, headers={"Host": host_header} if host_header else {})
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()

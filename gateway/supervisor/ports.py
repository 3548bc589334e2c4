"""Checks that the ports are free before anything starts."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping

from gateway.supervisor.options import StartRefused

# Offsets that are tried for an alternative port.
SUGGESTIONS = range(10, 200, 10)


def require_free_ports(host: str, ports: Mapping[str, int]) -> None:
    """Raises: StartRefused naming the first port that cannot be bound, with a free alternative."""
    for name, port in ports.items():
        fault = bind_fault(host, port)
        if fault is not None:
            raise StartRefused(_refusal_text(host, name, port, fault, taken=set(ports.values())))


def bind_fault(host: str, port: int) -> int | None:
    """The errno of binding `host`:`port`; None when it is free. The port is released again."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            # Connections of the last run may remain in TIME_WAIT, which does not make the port taken.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except socket.gaierror:
        return errno.EADDRNOTAVAIL
    except OSError as error:
        return error.errno or errno.EADDRINUSE
    return None


def _refusal_text(host: str, name: str, port: int, fault: int, *, taken: set[int]) -> str:
    if fault == errno.EADDRNOTAVAIL:
        return f"HOST={host} is not an address of this machine. Leave HOST out to use 127.0.0.1."
    free = [port + step for step in SUGGESTIONS if port + step <= 65535 and port + step not in taken]
    other = next((number for number in free if bind_fault(host, number) is None), None)
    remedy = f"start with: make run {name}={other}" if other else f"name another with {name}=..."
    if fault == errno.EACCES:
        return f"Port {port} needs more rights than this user has. Use a port above 1023: make run {name}=8000"
    return f"Port {port} is taken. Stop what uses it or {remedy}"

"""Pure: an address to listen at, as operators write it."""

from __future__ import annotations


def split_address(text: str) -> tuple[str, int] | None:
    """Host and port of `127.0.0.1:9464`, `[::1]:9464` or `:9464` (all interfaces); None for anything else."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        return None
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1], int(port)
    return None if ":" in host else (host or "0.0.0.0", int(port))  # noqa: S104 - asked for

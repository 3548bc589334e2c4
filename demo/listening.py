"""Listening of the demonstration servers: loopback by default, no access log, immediate stop at SIGTERM."""

import argparse
import asyncio
import ipaddress
import logging
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

# Of one server; further connections get 503.
MAX_CONNECTIONS = 512


class StartError(Exception):
    """The server cannot start. The message is one line without secrets."""


def add_listen_arguments(parser: argparse.ArgumentParser, *, port: int) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to bind (default: %(default)s)")
    parser.add_argument("--port", type=_port, default=port, help="port to bind (default: %(default)s)")
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="bind an address other machines can reach; this is a demonstration server, think twice",
    )


def _port(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return number


def require_loopback(host: str, *, allow_remote: bool) -> None:
    """Raises: StartError unless `host` is loopback: a demo server must not face a network by accident."""
    if allow_remote:
        return
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise StartError(f"--host {host!r} cannot be resolved") from error
    if not all(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]).is_loopback for entry in found):
        raise StartError(
            f"--host {host} can be reached from other machines; this is a demonstration server (see --allow-remote)"
        )


def http_origin(host: str, port: int) -> str:
    """The origin of a plain HTTP server, with an IPv6 address in brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def write_once(path: Path, content: bytes) -> bytes:
    """Create `path` with `content`, readable by its owner, or return the existing content."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A hard link of a complete draft: of two processes that start at once, both read the same content.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        draft.unlink()  # left by a process of the same id that was killed half way
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    return path.read_bytes()


def serve(app: ASGIApp, *, name: str, host: str, port: int) -> None:
    """Serve until SIGTERM or Ctrl-C; print the ready line once the port is bound. Raises: StartError."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    # No access log: request lines carry authorization parameters.
    listener = _bind(host, port)
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        proxy_headers=False,  # the peer's address decides who may read /_stats
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=75,  # longer than clients keep pooled connections, so that no request meets a closed one
        timeout_graceful_shutdown=0,
    )
    print(f"{name} listening on {http_origin(host, port)}", flush=True)
    with suppress(KeyboardInterrupt):
        asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


def _is_news(record: logging.LogRecord) -> bool:
    # Stopping at once cuts open streams, and uvicorn would log each as an error.
    cut = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not cut and "graceful shutdown exceeded" not in record.getMessage()


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        # A restart binds at once although old connections are in TIME_WAIT.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise StartError(f"{http_origin(host, port)} cannot be bound: {error.strerror}") from error
    listener.setblocking(False)
    return listener


def fail(name: str, error: Exception) -> int:
    """Print the reason on one line of stderr; returns the exit status."""
    print(f"{name}: {error}", file=sys.stderr)
    return 2

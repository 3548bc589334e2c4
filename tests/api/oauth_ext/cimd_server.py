"""An https server on this computer that serves clients' documents under a public-looking name."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NAME = "app.example"


class DocumentServer:
    """`answers` maps paths to what is answered: a status, headers, a body, and seconds to wait before each half."""

    def __init__(self, folder: Path) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.port = 0
        self.certificate = _certificate(folder)

    def url(self, path: str) -> str:
        return f"https://{NAME}:{self.port}{path}"

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificate))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        self.headers.append(dict(request.headers))
        wanted = self.answers.get(request.path, {"status": 404})
        await asyncio.sleep(wanted.get("wait_s", 0))
        headers = {"Content-Type": "application/json", **wanted.get("headers", {})}
        response = web.StreamResponse(status=wanted.get("status", 200), headers=headers)
        body: bytes = wanted.get("body", b"{}")
        with suppress(ConnectionResetError):  # a client that lost patience has left
            await response.prepare(request)
            await response.write(body[: len(body) // 2])
            await asyncio.sleep(wanted.get("pause_s", 0))
            await response.write(body[len(body) // 2 :])
        return response


@contextmanager
def running(folder: Path) -> Iterator[DocumentServer]:
    """The server in a thread of its own, gone afterwards."""
    server = DocumentServer(folder)
    loop = asyncio.new_event_loop()
    started = threading.Event()
    stop: asyncio.Event | None = None

    async def serve() -> None:
        nonlocal stop
        stop = asyncio.Event()
        app = web.Application()
        app.router.add_get("/{path:.*}", server.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(server.certificate)
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        server.port = runner.addresses[0][1]
        started.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert started.wait(10)
    try:
        yield server
    finally:
        assert stop is not None
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


def _certificate(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path

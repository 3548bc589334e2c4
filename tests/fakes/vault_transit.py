"""Vault's transit engine over a real socket: keys with versions that really encrypt, tokens, and its refusals."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

TOKEN = "hvs.a-token-of-the-test"
_PATH = re.compile(r"/v1/(?P<mount>.+)/(?P<action>encrypt|decrypt)/(?P<key>[^/]+)")


@dataclass
class FakeVault:
    """Set an attribute, then ask. `released` lets go of requests that `is_slow` holds.

    `seen`: (action, key, namespace) of each request that was let in.
    """

    address: str = ""
    mount: str = "transit"
    namespace: str = ""
    token: str = field(default=TOKEN, repr=False)
    may: tuple[str, ...] = ("encrypt", "decrypt")  # of the token's policy
    is_sealed: bool = False
    is_slow: bool = False
    garbage: bytes | None = None  # in place of every answer, with status 200
    keys: dict[str, list[bytes]] = field(default_factory=lambda: {"gateway": [os.urandom(32)]}, repr=False)
    min_decryption_version: int = 1
    seen: list[tuple[str, str, str]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def rotate(self, key: str = "gateway") -> None:
        self.keys[key].append(os.urandom(32))

    def answer(self, path: str, headers: Any, body: bytes) -> tuple[int, dict[str, Any]]:
        if self.is_sealed:
            return 503, {"errors": ["Vault is sealed"]}
        asked = _PATH.fullmatch(path)
        namespace = headers.get("X-Vault-Namespace", "")
        if headers.get("X-Vault-Token") != self.token or namespace != self.namespace:
            return 403, {"errors": ["permission denied"]}
        if asked is None or asked["mount"] != self.mount:
            return 404, {"errors": [f'no handler for route "{path}"']}
        action, name = asked["action"], asked["key"]
        if action not in self.may:
            return 403, {"errors": ["1 error occurred: * permission denied"]}
        if name not in self.keys:
            return 400, {"errors": ["encryption key not found"]}
        self.seen.append((action, name, namespace))
        question = json.loads(body)
        if action == "encrypt":
            return self._encrypt(self.keys[name], base64.b64decode(question["plaintext"]))
        return self._decrypt(self.keys[name], question["ciphertext"])

    @staticmethod
    def _encrypt(versions: list[bytes], plaintext: bytes) -> tuple[int, dict[str, Any]]:
        nonce = os.urandom(12)
        sealed = base64.b64encode(nonce + AESGCM(versions[-1]).encrypt(nonce, plaintext, None)).decode()
        return 200, {"data": {"ciphertext": f"vault:v{len(versions)}:{sealed}", "key_version": len(versions)}}

    def _decrypt(self, versions: list[bytes], ciphertext: str) -> tuple[int, dict[str, Any]]:
        form = re.fullmatch(r"vault:v(\d+):(.+)", ciphertext)
        if form is None:
            return 400, {"errors": ["invalid ciphertext: no prefix"]}
        version, sealed = int(form[1]), base64.b64decode(form[2])
        if version < self.min_decryption_version:
            return 400, {"errors": ["ciphertext or signature version is disallowed by policy (too old)"]}
        if version > len(versions):
            return 400, {"errors": ["invalid ciphertext: version is too new"]}
        try:
            plaintext = AESGCM(versions[version - 1]).decrypt(sealed[:12], sealed[12:], None)
        except InvalidTag:
            return 400, {"errors": ["cipher: message authentication failed"]}
        return 200, {"data": {"plaintext": base64.b64encode(plaintext).decode()}}


@contextlib.contextmanager
def vault_transit(tls: ssl.SSLContext | None = None) -> Iterator[FakeVault]:
    vault = FakeVault()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if vault.is_slow:
                vault.released.wait()
            status, said = vault.answer(self.path, self.headers, body)
            text = json.dumps(said).encode() if vault.garbage is None else vault.garbage
            with contextlib.suppress(OSError):  # the client has given up
                self.send_response(status if vault.garbage is None else 200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        def log_message(self, *args: object) -> None:
            """Nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A handshake that the client ended is no fault here."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    vault.address = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield vault
    finally:
        vault.released.set()
        server.shutdown()
        thread.join()
        server.server_close()

"""AWS KMS over a real socket: encrypts with a key of its own, bound to the encryption context."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM


@dataclass
class FakeKms:
    """`refusal`: the code of every answer, if it is set."""

    address: str = ""
    key_id: str = "alias/gateway"
    refusal: str = ""
    key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)

    def answer(self, target: str, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.refusal:
            return 400, {"__type": self.refusal, "message": "words of the server"}
        if asked["KeyId"] != self.key_id:
            return 400, {"__type": "NotFoundException", "message": "words of the server"}
        context = json.dumps(asked["EncryptionContext"], sort_keys=True).encode()
        cipher = AESGCM(self.key)
        if target == "TrentService.Encrypt":
            nonce = os.urandom(12)
            blob = nonce + cipher.encrypt(nonce, base64.b64decode(asked["Plaintext"]), context)
            return 200, {"CiphertextBlob": base64.b64encode(blob).decode(), "KeyId": self.key_id}
        blob = base64.b64decode(asked["CiphertextBlob"])
        try:
            plain = cipher.decrypt(blob[:12], blob[12:], context)
        except InvalidTag:
            return 400, {"__type": "InvalidCiphertextException", "message": "words of the server"}
        return 200, {"Plaintext": base64.b64encode(plain).decode(), "KeyId": self.key_id}


@contextlib.contextmanager
def fake_kms() -> Iterator[FakeKms]:
    kms = FakeKms()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, said = kms.answer(self.headers["X-Amz-Target"], asked)
            text = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kms.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield kms
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

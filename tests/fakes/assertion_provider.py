"""A stand-in for an organization's identity provider: real keys behind real HTTP on 127.0.0.1, and their assertions."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

TYPE = "oauth-id-jag+jwt"


def new_key(algorithm: str) -> Any:
    """A private key for the algorithm."""
    if algorithm.startswith("ES"):
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public_jwk(private_key: Any, kid: str, algorithm: str) -> dict[str, Any]:
    """The published half."""
    found = jwt.get_algorithm_by_name(algorithm).to_jwk(private_key.public_key(), as_dict=True)
    return {**found, "kid": kid, "alg": algorithm, "use": "sig"}


@dataclass
class AssertionProvider:
    """`answers` replace documents: path to status and body. `asked`: the paths of all requests."""

    url: str = ""
    algorithm: str = "ES256"
    kid: str = "first"
    keys: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    # By ID token: the client at the gateway, and the subject.
    signed_in: dict[str, tuple[str, str]] = field(default_factory=dict)

    def rotate(self, kid: str) -> None:
        """Sign with a new key from now on; the former ones stay published."""
        self.kid = kid
        self.keys[kid] = new_key(self.algorithm)

    def claims(self, *, audience: str, client_id: str, subject: str, **more: Any) -> dict[str, Any]:
        """Those of a valid assertion. None leaves a claim out."""
        now_s = int(time.time())
        known = {
            "iss": self.url,
            "sub": subject,
            "aud": audience,
            "client_id": client_id,
            "jti": uuid.uuid4().hex,
            "iat": now_s,
            "exp": now_s + 300,
            **more,
        }
        return {name: value for name, value in known.items() if value is not None}

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        """`header` changes the members of the header; None leaves one out."""
        known = {"typ": TYPE, "kid": self.kid, **header}
        known = {name: value for name, value in known.items() if value is not None}
        return jwt.encode(claims, self.keys[self.kid], algorithm=self.algorithm, headers=known)

    def assertion(self, **claims: Any) -> str:
        """A signed assertion."""
        return self.sign(self.claims(**claims))

    def document(self, path: str) -> tuple[int, bytes]:
        """The answer to a request."""
        if path in self.answers:
            return self.answers[path]
        if path == "/.well-known/openid-configuration":
            return 200, json.dumps({"issuer": self.url, "jwks_uri": f"{self.url}/keys"}).encode()
        if path == "/keys":
            keys = [public_jwk(key, kid, self.algorithm) for kid, key in self.keys.items()]
            return 200, json.dumps({"keys": keys}).encode()
        return 404, b"{}"

    def exchange(self, form: dict[str, str]) -> tuple[int, bytes]:
        """The answer of the token endpoint: an assertion for the ID token of a person who signed in (RFC 8693)."""
        known = self.signed_in.get(form.get("subject_token", ""))
        if known is None or form.get("requested_token_type") != "urn:ietf:params:oauth:token-type:id-jag":
            return 400, b'{"error":"invalid_request"}'
        client_id, subject = known
        more = {name: form[name] for name in ("resource", "scope") if name in form}
        made = self.assertion(audience=form["audience"], client_id=client_id, subject=subject, **more)
        answer = {
            "access_token": made,
            "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "token_type": "N_A",
            "expires_in": 300,
        }
        return 200, json.dumps(answer).encode()


@contextlib.contextmanager
def running_provider(algorithm: str = "ES256") -> Iterator[AssertionProvider]:
    """The provider in threads of the test, gone afterwards."""
    provider = AssertionProvider(algorithm=algorithm)
    provider.rotate("first")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.asked.append(self.path)
            self._answer(*provider.document(self.path))

        def do_POST(self) -> None:
            provider.asked.append(self.path)
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer(*provider.exchange(dict(parse_qsl(text))))

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # the reader may have had enough
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing: tests read `asked`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)

"""Standard Webhooks: an HTTP POST that is signed over its id, its time and its body.

Sources:
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
github.com/standard-webhooks/standard-webhooks libraries/python (how a secret is decoded, five minutes of tolerance)
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.receivers.strict_json import NotJson, parsed, text_of
from tests.receivers.wire import Event, Reply, Request, Wire, in_text

TOLERANCE_S = 300
SECONDS = re.compile(r"[1-9]\d{9}")
NAMES = ("webhook-id", "webhook-timestamp", "webhook-signature")


def key_of(secret: str) -> bytes:
    """The bytes of a secret: base64, after whsec_ where it is there, padded or not."""
    text = secret.removeprefix("whsec_").rstrip("=")
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


class Webhook(Wire):
    """Every one of `secrets` must have its signature: two while they rotate, none for requests that are not signed."""

    def __init__(self, *, secrets: Sequence[str] = (), path: str = "", **settings: Any) -> None:
        super().__init__(**settings)
        self.keys, self.path = [key_of(secret) for secret in secrets], path
        self._bodies: dict[str, bytes] = {}

    def in_words(self, status: int) -> Reply:
        return in_text(status, "said by the receiver")

    def read(self, request: Request) -> list[Event]:
        self.must_be_post(request, in_text(405, ""))
        if self.path and request.path != self.path:
            self.refuse(in_text(404, ""), f"path {request.target}")
        if request.media_type != "application/json":
            self.breach(f"Content-Type {request.media_type}")
        if "Content-Encoding" in request.headers:
            self.breach("a receiver's library verifies the bytes of the body, which must not be compressed")
        webhook_id, at, signature = (request.headers.get(name, "") for name in NAMES)
        if not webhook_id or not at or bool(signature) != bool(self.keys):
            self.refuse(in_text(400, "Missing required headers"), "the webhook- headers are not those that are due")
        self._check_id_and_time(webhook_id, at, request.raw)
        if self.keys:
            self._check_signature(f"{webhook_id}.{at}.".encode() + request.raw, signature)
        try:
            payload = parsed(text_of(request.raw))
        except NotJson as reason:
            self.refuse(in_text(400, "not JSON"), str(reason))
        return [{"id": webhook_id, "payload": payload}]

    def _check_id_and_time(self, webhook_id: str, at: str, body: bytes) -> None:
        if "." in webhook_id:
            self.breach("the id has a full stop, which ends it in the signed text")
        if self._bodies.setdefault(webhook_id, body) != body:
            self.breach(f"the id {webhook_id} came with another body before")
        if not SECONDS.fullmatch(at):
            self.refuse(in_text(400, "Invalid Signature Headers"), f"the time {at} is not in whole seconds")
        if abs(int(at) - self.clock().timestamp()) > TOLERANCE_S:
            self.refuse(
                in_text(400, "Message timestamp too old or too new"), f"the time {at} is not that of the attempt"
            )

    def _check_signature(self, signed: bytes, header: str) -> None:
        given = []
        for entry in header.split(" "):
            version, comma, value = entry.partition(",")
            if not comma or version not in ("v1", "v1a"):
                self.refuse(in_text(400, "Invalid Signature Headers"), f"{entry!r} is no signature")
            if version == "v1":
                given.append(self._bytes_of(value))
        for place, key in enumerate(self.keys):
            due = hmac.new(key, signed, hashlib.sha256).digest()
            if not any(hmac.compare_digest(due, each) for each in given):
                self.refuse(in_text(401, "No matching signature found"), f"no signature by secret {place}")
        if len(given) != len(self.keys):
            self.breach(f"{len(given)} signatures for {len(self.keys)} secrets")

    def _bytes_of(self, value: str) -> bytes:
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            self.refuse(in_text(400, "Invalid Signature Headers"), "a signature is not base64")

    def answer(self, events: Sequence[Event], refused: Mapping[int, int]) -> Reply:
        if refused:
            return in_text(400, "refused by the receiver")
        return in_text(200, "", range(len(events)))

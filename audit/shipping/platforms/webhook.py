"""Pure: a generic webhook, signed as Standard Webhooks describes.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
Spec: §2 Log shipping destination · D140
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from audit.shipping.events import Event
from audit.shipping.platforms.exchange import (
    JSON_TYPE,
    Answer,
    Delivered,
    InvalidDestination,
    Outgoing,
    RetryLater,
    Target,
    Verdict,
)
from audit.shipping.platforms.platform import ConfigField, Platform
from audit.shipping.platforms.verdicts import retry_after_s, verdict_of_status, words_of
from gateway.lib import clock
from gateway.lib.sentences import sentence

_BASE64_PREFIX: Final = "whsec_"
_KEY_BYTES: Final = range(24, 65)  # the lengths that the specification allows for its own form
_UNREADABLE: Final = sentence("After %(prefix)s, a secret must be 24 to 64 bytes in base64.", prefix=_BASE64_PREFIX)
_ALONE: Final = sentence("Enter the new secret along with the previous one.")


class Webhook(Platform):
    value = "webhook"
    title = "Webhook"
    aliases = ("standard webhooks", "standard_webhooks")
    endpoint_help = sentence("Each batch is sent to this address unchanged, with POST.")
    endpoint_example = "https://logs.example.com/hooks/mcp-gateway"
    fields = (
        ConfigField(
            "secret",
            sentence("Signing secret"),
            sentence("Any text, or %(prefix)s followed by base64. If empty, nothing is signed.", prefix=_BASE64_PREFIX),
        ),
        ConfigField(
            "previousSecret",
            sentence("Previous signing secret"),
            sentence("While you rotate the secret, both sign the records."),
        ),
    )

    def check(self, url: str, config: Mapping[str, str]) -> None:
        for name in ("secret", "previousSecret"):
            if _key(config.get(name, "")) is None:
                raise InvalidDestination("config_missing", **{name: _UNREADABLE})
        if config.get("previousSecret") and not config.get("secret"):
            raise InvalidDestination("config_missing", secret=_ALONE)

    def request(self, target: Target, events: Sequence[Event], *, now: datetime, token: str) -> Outgoing:
        body = msgspec.json.encode({"events": [_event(event) for event in events]})
        batch_id, timestamp = _batch_id(events), str(int(now.timestamp()))
        headers = {**JSON_TYPE, "webhook-id": batch_id, "webhook-timestamp": timestamp}
        keys = [_key(target.config.get(name, "")) for name in ("secret", "previousSecret")]
        signed = f"{batch_id}.{timestamp}.".encode() + body
        if signatures := [_signature(key, signed) for key in keys if key]:
            headers["webhook-signature"] = " ".join(signatures)
        # Some frameworks hand over the body as it came, others decompress it first. Uncompressed, the signed bytes are
        # the same in all of them.
        return Outgoing(target.url, headers, body, may_compress=False)

    def read(self, answer: Answer, events: Sequence[Event]) -> Verdict:
        # Receivers answer 400 to a signature they cannot verify as well. Read as a bad record, that would set aside
        # every record one by one until the receiver is repaired.
        if 200 <= answer.status < 300:  # with any body
            return Delivered()
        if answer.status == 400:
            return RetryLater(words_of(answer), retry_after_s(answer))
        return verdict_of_status(answer)


def _event(event: Event) -> dict[str, Any]:
    return {"id": event.id, "type": event.type, "timestamp": clock.rfc3339(event.time), "data": event.fields}


def _batch_id(events: Sequence[Event]) -> str:
    """The same batch has the same id when it is sent again: receivers drop what they have."""
    return "batch_" + hashlib.sha256("\n".join(event.id for event in events).encode()).hexdigest()[:32]


def _key(secret: str) -> bytes | None:
    """Empty for no secret, None for an unreadable one."""
    if not secret.startswith(_BASE64_PREFIX):
        return secret.encode()
    text = secret.removeprefix(_BASE64_PREFIX).rstrip("=")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) in _KEY_BYTES else None


def _signature(key: bytes, signed: bytes) -> str:
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()

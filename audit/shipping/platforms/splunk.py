"""Pure: Splunk by its HTTP Event Collector, fields named as in the Common Information Model. Spec: D140"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from audit.shipping.events import Event
from audit.shipping.platforms.answers import json_of
from audit.shipping.platforms.authorization import check_header_text
from audit.shipping.platforms.changes import Change, change_of, noun_of
from audit.shipping.platforms.encoding import epoch_seconds, json_lines
from audit.shipping.platforms.exchange import (
    JSON_TYPE,
    Answer,
    Delivered,
    DestinationRefused,
    Outgoing,
    RetryLater,
    Target,
    Verdict,
)
from audit.shipping.platforms.platform import ConfigField, Platform
from audit.shipping.platforms.request_parts import with_path
from audit.shipping.platforms.verdicts import retry_after_s, verdict_of_status, words_of
from gateway.lib.sentences import sentence

PATH: Final = "/services/collector/event"
PRODUCT: Final = "mcp-gateway"
FIELDS: Final = {
    "orgId": "org_id",
    "userId": "user_id",
    "userLabel": "user",
    "vendor": "app",
    "tool": "tool",
    "kind": "kind",
    "item": "item",
    "source": "call_source",  # `source` is a field of every event in Splunk
    "status": "status",
    "errorCode": "error_code",
    "durationMs": "response_time",
    "vendorMs": "vendor_ms",
    "credentialScope": "credential_scope",
    "credentialName": "credential_name",
    "cached": "cached",
    "clientId": "client_id",
    "clientName": "client_name",
    "ipAddress": "src",
    "requestId": "request_id",
    "requestBytes": "bytes_in",
    "responseBytes": "bytes_out",
    "count": "count",
    "eventType": "event_type",
    "actorId": "user_id",
    "actorLabel": "user",
    "targetId": "object_id",
    "targetLabel": "object",
    "metadata": "metadata",
}
_ACTIONS = {Change.CREATION: "created", Change.DELETION: "deleted", Change.UPDATE: "updated"}
_STORED: Final = frozenset({0, 24, 25})  # 24 and 25: stored, but a queue is filling
_INCORRECT_INDEX: Final = 7
_WITHOUT_CHANNEL: Final = frozenset({10, 11})


class _Hec(msgspec.Struct):
    code: int | None = None
    text: str = ""


class Splunk(Platform):
    value = "platform_c"
    title = "Splunk"
    aliases = ("splunk", "splunk hec", "splunk-hec")
    endpoint_label = sentence("HTTP Event Collector address")
    endpoint_help = sentence("The base address of the collector, or the full one of its event endpoint.")
    endpoint_example = "https://http-inputs-example.splunkcloud.com"
    fields = (
        ConfigField(
            "token", sentence("HEC token"), sentence("From a token without indexer acknowledgment."), required=True
        ),
    )

    def check(self, url: str, config: Mapping[str, str]) -> None:
        check_header_text(config, "token")

    def request(self, target: Target, events: Sequence[Event], *, now: datetime, token: str) -> Outgoing:
        headers = {**JSON_TYPE, "Authorization": f"Splunk {target.config['token']}"}
        return Outgoing(with_path(target.url, PATH), headers, json_lines(map(_envelope, events)))

    def read(self, answer: Answer, events: Sequence[Event]) -> Verdict:
        code = (json_of(answer, _Hec) or _Hec()).code
        if 200 <= answer.status < 300:
            if code in _STORED:
                return Delivered()
            return RetryLater(f"not an answer of the collector: {words_of(answer)}", retry_after_s(answer))
        if code in _WITHOUT_CHANNEL:
            return DestinationRefused(f"{words_of(answer)}: turn off indexer acknowledgment for this token")
        # No index is sent: the token's own default index is missing or not among those it allows.
        if code == _INCORRECT_INDEX:
            return DestinationRefused(words_of(answer))
        return verdict_of_status(answer)


def _envelope(event: Event) -> dict[str, Any]:
    return {
        "time": epoch_seconds(event.time),
        "source": PRODUCT,
        "sourcetype": f"mcp_gateway:{event.type}",
        "event": _record(event),
    }


def _record(event: Event) -> dict[str, Any]:
    named = {"event_id": event.id, "type": event.type, "vendor_product": PRODUCT, **_actions(event)}
    return named | {FIELDS.get(name, name): value for name, value in event.fields.items()}


def _actions(event: Event) -> dict[str, str]:
    if event.is_tool_call:
        return {"action": "blocked" if event.fields.get("status") == "denied" else "allowed"}
    event_type = event.fields.get("eventType", "")
    return {"action": _ACTIONS[change_of(event_type)], "object_category": noun_of(event_type)}

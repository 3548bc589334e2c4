"""Pure: OpenTelemetry logs over OTLP/HTTP, in its JSON encoding.

https://opentelemetry.io/docs/specs/otlp/#otlphttp  Spec: §2 Log shipping destination · D140
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from audit.call_status import CallKind
from audit.shipping.events import Event
from audit.shipping.platforms.exchange import (
    JSON_TYPE,
    Answer,
    Delivered,
    DestinationRefused,
    InvalidDestination,
    Outgoing,
    RetryLater,
    Target,
    Verdict,
)
from audit.shipping.platforms.for_people import ERROR, INFO, WARN, level_of, line_of
from audit.shipping.platforms.otlp_headers import InvalidHeaders, parse_headers
from audit.shipping.platforms.otlp_values import any_value, key_values
from audit.shipping.platforms.platform import ConfigField, Platform
from audit.shipping.platforms.request_parts import with_path
from audit.shipping.platforms.verdicts import (
    EXCERPT_CHARACTERS,
    is_web_page,
    retry_after_s,
    verdict_of_status,
    words_of,
)
from gateway.lib.sentences import sentence

PATH: Final = "/v1/logs"
_SEVERITY: Final = {INFO: 9, WARN: 13, ERROR: 17}
_MAY_BE_REPEATED: Final = frozenset({429, 502, 503, 504})  # the specification forbids to repeat after any other
_OF_THE_RECORDS: Final = frozenset({400, 413, 422})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RESOURCE: Final = {"attributes": key_values({"service.name": "mcp-gateway"})}
_SCOPE: Final = {"name": "mcp_gateway.audit"}
# Names of the semantic conventions where they have one; other fields are under the gateway's own prefix.
_PREFIX: Final = "mcp_gateway."
_ATTRIBUTES: Final = {
    "userId": "user.id",
    "userLabel": "user.name",
    "actorId": "user.id",
    "actorLabel": "user.name",
    "ipAddress": "client.address",
    "errorCode": "error.type",
    "tool": "gen_ai.tool.name",
    "orgId": "mcp_gateway.org.id",
    "durationMs": "mcp_gateway.duration_ms",
    "vendorMs": "mcp_gateway.vendor.duration_ms",
    "credentialScope": "mcp_gateway.credential.scope",
    "credentialName": "mcp_gateway.credential.name",
    "clientId": "mcp_gateway.client.id",
    "clientName": "mcp_gateway.client.name",
    "requestId": "mcp_gateway.request.id",
    "requestBytes": "mcp_gateway.request.size",
    "responseBytes": "mcp_gateway.response.size",
    "eventType": "mcp_gateway.admin.event_type",
    "targetId": "mcp_gateway.target.id",
    "targetLabel": "mcp_gateway.target.name",
}


class Otlp(Platform):
    value = "platform_f"
    title = "OpenTelemetry (OTLP/HTTP)"
    aliases = ("otlp", "otel", "opentelemetry", "open telemetry", "open_telemetry")
    endpoint_label = sentence("Endpoint")
    endpoint_help = sentence(
        "If the address has no path, %(path)s is added; otherwise it is used unchanged.", path=PATH
    )
    endpoint_example = "https://otlp.example.com/v1/logs"
    fields = (
        ConfigField(
            "headers",
            sentence("Headers"),
            sentence("Lines of Name: value, or the text of OTEL_EXPORTER_OTLP_HEADERS (name=value,name=value)."),
            has_lines=True,
        ),
    )

    def check(self, url: str, config: Mapping[str, str]) -> None:
        try:
            parse_headers(config.get("headers", ""))
        except InvalidHeaders as fault:
            raise InvalidDestination("config_missing", headers=str(fault)) from None

    def request(self, target: Target, events: Sequence[Event], *, now: datetime, token: str) -> Outgoing:
        scope_logs = {"scope": _SCOPE, "logRecords": [_record(event) for event in events]}
        body = msgspec.json.encode({"resourceLogs": [{"resource": _RESOURCE, "scopeLogs": [scope_logs]}]})
        headers = {**parse_headers(target.config.get("headers", "")), **JSON_TYPE}
        return Outgoing(with_path(target.url, PATH), headers, body)

    def read(self, answer: Answer, events: Sequence[Event]) -> Verdict:
        if 200 <= answer.status < 300:
            return _read_success(answer, events)
        if answer.status in _MAY_BE_REPEATED:
            return RetryLater(words_of(answer), retry_after_s(answer))
        if answer.status in _OF_THE_RECORDS:
            return verdict_of_status(answer)
        return DestinationRefused(words_of(answer))


def _record(event: Event) -> dict[str, Any]:
    nanoseconds = str((event.time - _EPOCH) // timedelta(microseconds=1) * 1000)
    level = level_of(event)
    attributes = {"log.record.uid": event.id}
    attributes |= {_ATTRIBUTES.get(name, _PREFIX + name): value for name, value in event.fields.items()}
    if event.fields.get("kind") == CallKind.TOOL:
        attributes["gen_ai.operation.name"] = "execute_tool"
    return {
        "timeUnixNano": nanoseconds,
        "observedTimeUnixNano": nanoseconds,
        "severityNumber": _SEVERITY[level],
        "severityText": level.upper(),
        "eventName": _PREFIX + event.type,
        "body": any_value(line_of(event)),
        "attributes": key_values(attributes),
    }


def _read_success(answer: Answer, events: Sequence[Event]) -> Verdict:
    if is_web_page(answer):
        return DestinationRefused(f"{answer.status}: a web page answers at this address instead of an OTLP receiver")
    rejected, message = _partial_success(answer.body)
    count = min(max(rejected, 0), len(events))
    # A batch in part accepted must not be sent again, and the answer never says which records were rejected.
    return Delivered(unnamed=(message[:EXCERPT_CHARACTERS] or "rejected",) * count)


def _partial_success(body: bytes) -> tuple[int, str]:
    """How many log records were rejected, and why; (0, "") for full success."""
    try:
        partial = msgspec.json.decode(body)["partialSuccess"]
        return int(partial.get("rejectedLogRecords", 0)), str(partial.get("errorMessage", ""))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return 0, ""

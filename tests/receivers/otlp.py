"""OpenTelemetry: OTLP/HTTP logs in JSON, POST /v1/logs.

Sources:
https://opentelemetry.io/docs/specs/otlp/#otlphttp-request
https://opentelemetry.io/docs/specs/otlp/#otlphttp-response (successes, partial ones, failures)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.receivers.otlp_messages import EXPORT_REQUEST, NotOtlp, plain, plain_keys
from tests.receivers.strict_json import NotJson, parsed, text_of
from tests.receivers.wire import Event, Reply, Request, Wire, in_json

MOST_BYTES = 20 * 1024 * 1024
GRPC_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 413: 8, 429: 8, 503: 14}


class Otlp(Wire):
    """`headers` are asked for with these values, as those of a destination that authenticates by them.

    `success` is the body of a full success. It has no partialSuccess; real servers also send a null or an empty one.
    """

    has_partial_failures = True

    def __init__(
        self,
        *,
        headers: Mapping[str, str] | None = None,
        path: str = "/v1/logs",
        success: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.headers, self.path, self.success = headers or {}, path, success or {}

    def in_words(self, status: int) -> Reply:
        return _status(status, "said by the receiver")

    def read(self, request: Request) -> list[Event]:
        self.must_be_post(request, _status(405, "POST alone"))
        if request.target != self.path:
            self.refuse(_status(404, "not found"), f"path {request.target}")
        if any(request.headers.get(name) != value for name, value in self.headers.items()):
            self.refuse(_status(401, "unauthenticated"))
        if request.media_type != "application/json":
            self.refuse(_status(415, "unsupported media type"), f"Content-Type {request.media_type}")
        if len(request.body) > MOST_BYTES:
            self.refuse(_status(413, "too large"))
        try:
            body = parsed(text_of(request.body))
            EXPORT_REQUEST(body, "request")
        except (NotJson, NotOtlp) as reason:
            self.refuse(_status(400, str(reason)), str(reason))
        return [
            _record(group.get("resource", {}), part.get("scope", {}), record)
            for group in body.get("resourceLogs", [])
            for part in group.get("scopeLogs", [])
            for record in part.get("logRecords", [])
        ]

    def answer(self, events: Sequence[Event], refused: Mapping[int, int]) -> Reply:
        stored = [place for place in range(len(events)) if place not in refused]
        if not refused:
            return in_json(200, self.success, stored)
        partial = {"rejectedLogRecords": str(len(refused)), "errorMessage": "log records refused by the receiver"}
        return in_json(200, {"partialSuccess": partial}, stored)


def _status(status: int, message: str) -> Reply:
    """A google.rpc.Status."""
    return in_json(status, {"code": GRPC_CODES.get(status, 2), "message": message})


def _record(resource: Event, scope: Event, record: Event) -> Event:
    """With attributes as objects, and the body as the value it stands for."""
    return {
        **record,
        "body": plain(record.get("body", {})),
        "attributes": plain_keys(record.get("attributes", [])),
        "resource": plain_keys(resource.get("attributes", [])),
        "scope": scope.get("name", ""),
    }

"""Azure Monitor Logs Ingestion: POST /dataCollectionRules/ID/streams/NAME, with a token of Entra (see entra.py).

Sources:
https://learn.microsoft.com/en-us/azure/azure-monitor/logs/logs-ingestion-api-overview (address, headers, columns)
https://learn.microsoft.com/en-us/azure/azure-monitor/fundamentals/service-limits#logs-ingestion-api (1 MB, 64 KB, 429)
https://learn.microsoft.com/en-us/azure/azure-monitor/logs/tutorial-logs-ingestion-code#troubleshooting (statuses)
github.com/Azure/azure-sdk-for-net sdk/monitor/Azure.Monitor.Ingestion/TROUBLESHOOTING.md (the form of an error)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.receivers.entra import Entra
from tests.receivers.strict_json import NotJson, parsed, text_of
from tests.receivers.wire import Event, Refused, Reply, Request, Wire, in_json

PATH = re.compile(r"/dataCollectionRules/(dcr-[0-9a-f]{32})/streams/((?:Custom|Microsoft)-[A-Za-z0-9_-]+)")
COLUMN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,44}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,7})?(Z|[+-]\d\d:\d\d)")
RESERVED = {"_ResourceId", "id", "_SubscriptionId", "TenantId", "Type", "UniqueId", "Title"}
MOST_BYTES, MOST_FIELD_BYTES = 1024 * 1024, 64 * 1024  # of a call, compressed and not; longer fields are cut
CODES = {
    401: "AuthenticationTokenInvalid",
    403: "OperationFailed",
    404: "NotFound",
    413: "ContentLengthLimitExceeded",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
}


class Azure(Wire):
    """`may_write`: the application has the role Monitoring Metrics Publisher. Takes a batch whole or refuses it."""

    def __init__(
        self,
        *,
        tenant: str,
        client_id: str,
        client_secret: str,
        rule: str,
        streams: Sequence[str] | None = None,
        may_write: bool = True,
        lifetime_s: int = 3599,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.rule, self.streams, self.may_write = rule, streams, may_write
        self.entra = Entra(tenant, (client_id, client_secret), lifetime_s, lambda: self.clock(), self.breach)

    def in_words(self, status: int) -> Reply:
        return error(status, "said by the receiver")

    def read(self, request: Request) -> list[Event]:
        if "/oauth2/" in request.path:
            raise Refused(self.entra.answer(request))
        self.must_be_post(request, error(405, "POST alone"))
        path = PATH.fullmatch(request.path)
        if path is None or request.query != {"api-version": ["2023-01-01"]}:
            self.refuse(error(404, "no such address"), f"address {request.target}")
        self._check_token(request)
        if path[1] != self.rule:
            self.refuse(error(404, f"Data collection rule with immutable Id '{path[1]}' not found."))
        if self.streams is not None and path[2] not in self.streams:
            self.refuse(error(400, f"Stream '{path[2]}' was not found in the rule.", "InvalidStream"))
        if request.media_type != "application/json":
            self.refuse(error(415, "application/json alone"), f"Content-Type {request.media_type}")
        if max(len(request.raw), len(request.body)) > MOST_BYTES:
            self.refuse(error(413, "Maximum allowed content length: 1048576 bytes."))
        return self._rows(request.body)

    def _check_token(self, request: Request) -> None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not token:
            self.refuse(error(401, "no token", "AuthenticationTokenMissing"), "no Authorization: Bearer TOKEN")
        if not self.entra.is_valid(token):
            self.refuse(error(401, "The token is not valid, or has ended."))
        if not self.may_write:
            words = "The authentication token provided does not have access to ingest data for the data collection rule"
            self.refuse(error(403, words))

    def _rows(self, body: bytes) -> list[Event]:
        try:
            rows = parsed(text_of(body))
        except NotJson as reason:
            self.refuse(error(400, str(reason), "InvalidPayload"), str(reason))
        if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
            self.refuse(error(400, "no list of objects", "InvalidPayload"), "the body is no list of objects")
        for place, row in enumerate(rows):
            self._check(place, row)
        return rows

    def _check(self, place: int, row: Event) -> None:
        """Breaches that the platform takes in silence: a column that is dropped, a value that is cut."""
        if not _is_time(row.get("TimeGenerated")):
            self.breach(f"row {place}: TimeGenerated is no time of ISO 8601: {row.get('TimeGenerated')!r}")
        for name, value in row.items():
            if not COLUMN.fullmatch(name) or name in RESERVED:
                self.breach(f"row {place}: {name} is no name of a column")
            if len((value if isinstance(value, str) else json.dumps(value)).encode()) > MOST_FIELD_BYTES:
                self.breach(f"row {place}: {name} is longer than {MOST_FIELD_BYTES} bytes")

    def answer(self, events: Sequence[Event], refused: Mapping[int, int]) -> Reply:
        if refused:
            return error(400, "a row was refused by the receiver", "InvalidPayload")
        return Reply(204, stored=range(len(events)))


def error(status: int, message: str, code: str = "") -> Reply:
    return in_json(status, {"error": {"code": code or CODES.get(status, "InternalServerError"), "message": message}})


def _is_time(value: Any) -> bool:
    if not isinstance(value, str) or not TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True

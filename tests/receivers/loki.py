"""Grafana Loki: POST /loki/api/v1/push in JSON.

Sources:
https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs
https://grafana.com/docs/loki/latest/configure/#limits_config (limits: 15 labels, 1024 and 2048 characters, 256 KB)
https://grafana.com/docs/loki/latest/operations/multi-tenancy/
https://grafana.com/docs/loki/latest/operations/request-validation-rate-limits
https://grafana.com/docs/loki/latest/operations/troubleshooting/troubleshoot-ingest/
github.com/grafana/loki pkg/validation/validate.go (the texts), pkg/ingester/stream.go (lines that are too far behind)
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from tests.receivers.strict_json import NotJson, parsed, text_of
from tests.receivers.wire import Event, Reply, Request, Wire, in_text

LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
NANOSECONDS = re.compile(r"[1-9][0-9]{18}")  # from 2001 to 2286
MOST_LABELS, LONGEST_NAME, LONGEST_VALUE, LONGEST_LINE = 15, 1024, 2048, 256 * 1024
MOST_METADATA, MOST_METADATA_BYTES = 128, 64 * 1024
OLDEST, NEWEST = timedelta(days=7), timedelta(minutes=10)
BEHIND_NS = 3600 * 10**9  # half of the longest age of a chunk


class Loki(Wire):
    """`tenant`, `username` and `password` are asked for when they are set."""

    has_partial_failures = True

    def __init__(self, *, tenant: str = "", username: str = "", password: str = "", **settings: Any) -> None:
        super().__init__(**settings)
        self.tenant = tenant
        self.basic = base64.b64encode(f"{username}:{password}".encode()).decode() if username else ""
        self._newest_ns: dict[str, int] = {}

    def in_words(self, status: int) -> Reply:
        limit = "Ingestion rate limit exceeded for user fake (limit: 4194304 bytes/sec), reduce log volume"
        return in_text(status, limit if status == 429 else "said by the receiver")

    def read(self, request: Request) -> list[Event]:
        self.must_be_post(request, in_text(405, ""))
        if request.path != "/loki/api/v1/push" or request.query:
            self.refuse(in_text(404, "404 page not found"), f"path {request.target}")
        if self.basic and request.headers.get("Authorization") != f"Basic {self.basic}":
            self.refuse(in_text(401, "Unauthorized"))
        if self.tenant and request.headers.get("X-Scope-OrgID") != self.tenant:
            self.refuse(in_text(401, "no org id"))
        if request.media_type != "application/json":
            self._bad(f"Content-Type {request.media_type}")
        try:
            body = parsed(text_of(request.body))
        except NotJson as reason:
            self._bad(f"not JSON: {reason}")
        if not isinstance(body, dict) or list(body) != ["streams"] or not isinstance(body["streams"], list):
            self._bad("the body is no object of streams alone")
        if not body["streams"]:
            words = "error at least one valid stream is required for ingestion"
            self.refuse(in_text(422, words), words)
        return [event for stream in body["streams"] for event in self._stream(stream)]

    def _stream(self, stream: Any) -> list[Event]:
        if not isinstance(stream, dict) or stream.keys() != {"stream", "values"}:
            self._bad("a stream is no object of stream and values")
        labels, values = stream["stream"], stream["values"]
        if not isinstance(labels, dict) or not isinstance(values, list) or not values:
            self._bad("stream is no object, or values no list with entries")
        if not labels:
            self._bad("error at least one label pair is required per stream")
        if len(labels) > MOST_LABELS:
            self._bad(f"entry for stream '{selector(labels)}' has {len(labels)} label names; limit {MOST_LABELS}")
        for name, value in labels.items():
            if not LABEL.fullmatch(name) or not isinstance(value, str):
                self._bad(f"error parsing labels: {name!r} is no name, or its value no text")
            if len(name) > LONGEST_NAME or len(value) > LONGEST_VALUE:
                self._bad(f"stream '{selector(labels)}' has label name or value too long: '{name}'")
        return [self._entry(labels, entry) for entry in values]

    def _entry(self, labels: dict[str, str], entry: Any) -> Event:
        if not isinstance(entry, list) or len(entry) not in (2, 3) or not isinstance(entry[1], str):
            self._bad("an entry is no list of time, line and perhaps metadata")
        if not isinstance(entry[0], str) or not NANOSECONDS.fullmatch(entry[0]):
            self._bad(f"the time {entry[0]!r} is no text of nanoseconds since 1970")
        metadata = entry[2] if len(entry) == 3 else {}
        if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
            self._bad("structured metadata is no object of texts")
        size = sum(len(name.encode()) + len(value.encode()) for name, value in metadata.items())
        if len(metadata) > MOST_METADATA or size > MOST_METADATA_BYTES:
            self._bad(f"stream '{selector(labels)}' has structured metadata too large: '{size}' bytes")
        return {"stream": labels, "time_ns": entry[0], "line": entry[1], "metadata": metadata}

    def _bad(self, words: str) -> NoReturn:
        self.refuse(in_text(400, words), words)

    def answer(self, events: Sequence[Event], refused: Mapping[int, int]) -> Reply:
        stored, reasons = [], []
        for place, event in enumerate(events):
            reason = f"line refused: {place}" if place in refused else self._reason(event)
            if reason:
                at = datetime.fromtimestamp(int(event["time_ns"]) // 10**9, UTC)
                reasons.append(f"entry with timestamp {at:%Y-%m-%d %H:%M:%S} +0000 UTC ignored, reason: '{reason}',\n")
                continue
            stream = selector(event["stream"])
            self._newest_ns[stream] = max(self._newest_ns.get(stream, 0), int(event["time_ns"]))
            stored.append(place)
        if not reasons:
            return Reply(204, stored=stored)
        total = f"user 'fake', total ignored: {len(reasons)} out of {len(events)} for stream: "
        return in_text(400, "".join(reasons) + total + selector(events[0]["stream"]), stored)

    def _reason(self, event: Event) -> str:
        at_ns, stream = int(event["time_ns"]), selector(event["stream"])
        at, now = datetime.fromtimestamp(at_ns / 10**9, UTC), self.clock()
        if len(event["line"].encode()) > LONGEST_LINE:
            size = len(event["line"].encode())
            return f"Max entry size '{LONGEST_LINE}' bytes exceeded for stream '{stream}', length '{size}' bytes"
        if at < now - OLDEST:
            oldest = f"oldest acceptable timestamp is: {now - OLDEST:%FT%TZ}"
            return f"entry for stream '{stream}' has timestamp too old: {at:%FT%TZ}, {oldest}"
        if at > now + NEWEST:
            return f"entry for stream '{stream}' has timestamp too new: {at:%FT%TZ}"
        oldest_ns = self._newest_ns.get(stream, 0) - BEHIND_NS
        if at_ns < oldest_ns:
            oldest = f"oldest acceptable timestamp is: {datetime.fromtimestamp(oldest_ns / 10**9, UTC):%FT%TZ}"
            return f"entry too far behind, entry timestamp is: {at:%FT%TZ}, {oldest}"
        return ""


def selector(labels: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name}={json.dumps(labels[name])}" for name in sorted(labels)) + "}"

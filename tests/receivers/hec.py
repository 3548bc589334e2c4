"""Splunk's HTTP Event Collector, and the one of Falcon LogScale that is compatible with it.

Sources:
https://help.splunk.com/en/splunk-enterprise/get-data-in/collect-http-event-data/format-events-for-http-event-collector
https://help.splunk.com/en/splunk-enterprise/get-data-in/collect-http-event-data/troubleshoot-http-event-collector
https://help.splunk.com/en/splunk-enterprise/get-data-in/collect-http-event-data/http-event-collector-rest-api-endpoints
https://help.splunk.com/splunk-enterprise/get-data-in/collect-http-event-data/about-http-event-collector-indexer-acknowledgment
https://library.humio.com/logscale-api/log-shippers-hec.html
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from tests.receivers.envelopes import Unusable, envelopes
from tests.receivers.wire import Event, Reply, Request, Wire, in_json, in_text

CODES = {
    0: (200, "Success"),
    1: (403, "Token disabled"),
    2: (401, "Token is required"),
    3: (401, "Invalid authorization"),
    4: (403, "Invalid token"),
    5: (400, "No data"),
    6: (400, "Invalid data format"),
    7: (400, "Incorrect index"),
    8: (500, "Internal server error"),
    9: (503, "Server is busy"),
    10: (400, "Data channel is missing"),
    11: (400, "Invalid data channel"),
    12: (400, "Event field is required"),
    13: (400, "Event field cannot be blank"),
    14: (400, "ACK is disabled"),
    15: (400, "Error in handling indexed fields"),
}


def coded(code: int, number: int | None = None, stored: Sequence[int] = (), **more: Any) -> Reply:
    """`number`: the place of the first bad event."""
    status, text = CODES[code]
    place = {} if number is None else {"invalid-event-number": number}
    return in_json(status, {"text": text, "code": code, **place, **more}, stored)


class Splunk(Wire):
    """`indexes`: those that the token may write to, None for any. `acknowledges`: a channel is asked for.

    Splunk names the first bad event alone. Its documentation does not say that the events before it are kept; here
    they are, so a sender that sends them again is seen to.
    """

    has_partial_failures = True
    paths: tuple[str, ...] = ("/services/collector", "/services/collector/event", "/services/collector/event/1.0")
    scheme = "Splunk"
    keys = frozenset({"time", "host", "source", "sourcetype", "index", "event", "fields"})

    def __init__(
        self,
        *,
        token: str,
        indexes: Sequence[str] | None = None,
        acknowledges: bool = False,
        disabled: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.token, self.indexes, self.acknowledges, self.disabled = token, indexes, acknowledges, disabled
        self._acknowledgments = 0

    def in_words(self, status: int) -> Reply:
        codes = {401: 3, 403: 4, 400: 6, 500: 8, 503: 9}
        return coded(codes[status]) if status in codes else in_text(status, "said by the receiver")

    def read(self, request: Request) -> list[Event]:
        self.must_be_post(request, in_text(405, "Method not allowed"))
        if request.path not in self.paths:
            self.refuse(
                in_json(404, {"text": "The requested URL was not found on this server.", "code": 404}), request.path
            )
        self._check_token(request)
        self._check_channel(request)
        if request.media_type not in ("application/json", ""):
            self.breach(f"Content-Type {request.media_type}")
        if not request.body.strip():
            self.refuse(coded(5), "a request without an event")
        try:
            return envelopes(request.body, self.keys, self.breach)
        except Unusable as fault:
            self.refuse(coded(fault.code, fault.place), str(fault))

    def _check_token(self, request: Request) -> None:
        header = request.headers.get("Authorization")
        if header is None:
            self.refuse(coded(2), "no Authorization")
        scheme, _, token = header.partition(" ")
        if scheme != self.scheme or not token:
            self.refuse(coded(3), f"Authorization is not of the form {self.scheme} TOKEN")
        if token != self.token:
            self.refuse(coded(4))
        if self.disabled:
            self.refuse(coded(1))

    def _check_channel(self, request: Request) -> None:
        channel = request.headers.get("X-Splunk-Request-Channel") or "".join(request.query.get("channel", []))
        if not channel:
            return self.refuse(coded(10)) if self.acknowledges else None
        try:
            uuid.UUID(channel)
        except ValueError:
            self.refuse(coded(11), f"the channel {channel} is no GUID")

    def answer(self, events: Sequence[Event], refused: Mapping[int, int]) -> Reply:
        for place, event in enumerate(events):
            if place in refused:
                return coded(6, place, range(place))
            if self.indexes is not None and event.get("index", self.indexes[0]) not in self.indexes:
                return coded(7, place + 1, range(place))  # this code alone counts from one
        acknowledgment = {}
        if self.acknowledges:
            acknowledgment = {"ackId": self._acknowledgments}
            self._acknowledgments += 1
        return coded(0, None, range(len(events)), **acknowledgment)


class LogScale(Splunk):
    """Takes a batch whole or refuses it, with a status and words; a bearer token; one more key."""

    has_partial_failures = False
    paths = ("/api/v1/ingest/hec", "/services/collector")
    scheme = "Bearer"
    keys = Splunk.keys | {"timezone"}

    def in_words(self, status: int) -> Reply:
        return in_text(status, "said by the receiver")

    def _check_token(self, request: Request) -> None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != self.scheme or not token:
            self.refuse(in_text(401, "The supplied authentication is invalid"), "no Authorization: Bearer TOKEN")
        if token != self.token:
            self.refuse(in_text(401, "The supplied authentication is invalid"))

    def answer(self, events: Sequence[Event], refused: Mapping[int, int]) -> Reply:
        if refused:
            return in_text(400, "Could not handle input")
        return coded(0, None, range(len(events)))

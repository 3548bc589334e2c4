"""Pure: the facts of one call before they become a row. Every value of this type can be stored.

Spec: §2, §6 · D80
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from operator import attrgetter, gt
from types import MappingProxyType

import msgspec
from msgspec.structs import force_setattr

from audit.call_status import CallKind, CallSource, CallStatus
from audit.plain_text import plain_text
from gateway.lib import clock, ids

MAX_INTEGER = 2**31 - 1  # of the integer columns
# The widths of the text columns, in characters; longer texts are cut.
WIDTHS = MappingProxyType(
    {
        "user_id": 120,
        "user_label": 200,
        "vendor": 40,
        "tool": 128,
        "item": 512,
        "error_code": 40,
        "credential_scope": 16,
        "credential_name": 100,
        "client_id": 255,
        "client_name": 100,
        "ip_address": 45,
        "request_id": 64,
    }
)
_texts_of = attrgetter(*WIDTHS)
_WIDTHS_IN_ORDER = tuple(WIDTHS.values())
_COUNTS = ("duration_ms", "vendor_ms", "request_bytes", "response_bytes")
_counts_of = attrgetter(*_COUNTS)
STATUSES = tuple(status.value for status in CallStatus)
SOURCES = tuple(source.value for source in CallSource)
KINDS = tuple(kind.value for kind in CallKind)
TOOL = CallKind.TOOL.value
UNKNOWN = CallStatus.UNKNOWN.value
_INTEGERS = {int}


class CallRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The fields are columns of RequestAuditEntry. Raises: ValueError for a wrong status, source, kind, time or
    id.

    `timestamp` has whole milliseconds, and `id` begins with the same ones: filters by time are ranges of ids.
    """

    id: uuid.UUID = ids.NO_ID
    timestamp: datetime = msgspec.field(default_factory=clock.now)
    org_id: uuid.UUID
    user_id: str
    user_label: str
    vendor: str = ""
    tool: str = ""
    kind: str = TOOL
    item: str = ""  # the address of a resource or the name of a prompt, as the vendor has it
    source: str
    # `unknown` before the dispatch; it remains if the process dies before the outcome.
    status: str = UNKNOWN
    error_code: str = ""
    duration_ms: int = 0
    vendor_ms: int = 0
    credential_scope: str = ""
    credential_name: str = ""
    cached: bool = False
    client_id: str = ""
    client_name: str = ""
    ip_address: str = ""
    request_id: str
    request_bytes: int = 0
    response_bytes: int = 0

    def __post_init__(self) -> None:
        # On the hot path: one check of all texts together, and the slow path only for a bad one.
        texts = _texts_of(self)
        if not "".join(texts).isprintable() or any(map(gt, map(len, texts), _WIDTHS_IN_ORDER)):
            for name, width in WIDTHS.items():
                self._set(name, plain_text(getattr(self, name), max_characters=width))
        counts = _counts_of(self)
        if min(counts) < 0 or max(counts) > MAX_INTEGER or {*map(type, counts)} != _INTEGERS:
            for name in _COUNTS:
                self._set(name, min(max(int(getattr(self, name)), 0), MAX_INTEGER))
        if self.status not in STATUSES or self.source not in SOURCES or self.kind not in KINDS:
            raise ValueError("no such status, source or kind of a call")
        self._check_time()

    def _check_time(self) -> None:
        moment = self.timestamp
        if moment.tzinfo is not UTC:
            if moment.tzinfo is None:
                raise ValueError("the time of a call needs its zone")
            moment = moment.astimezone(UTC)
        if part := moment.microsecond % 1000:
            moment = moment.replace(microsecond=moment.microsecond - part)
        if moment is not self.timestamp:
            self._set("timestamp", moment)
        if self.id == ids.NO_ID:
            self._set("id", ids.log_id_for(moment))
        elif self.id.int >> 80 != ids.milliseconds_of(moment):
            raise ValueError("the id of a call does not have its time")

    def _set(self, name: str, value: object) -> None:
        force_setattr(self, name, value)


COLUMNS = CallRecord.__struct_fields__

"""The audit row of each call, committed before its answer leaves. Never arguments or results. Spec: §6 · D80"""

from __future__ import annotations

import uuid
from datetime import datetime
from time import perf_counter
from typing import Any

import msgspec

from audit.call_record import CallRecord
from audit.call_status import CallKind, CallStatus
from credentials.resolve import CredentialRef
from gateway.lib import clock, ids
from proxy.calls import call_figures
from proxy.calls.find_tool import FoundTool
from proxy.outcomes import (
    Asked,
    BadArguments,
    CacheStatus,
    CallFault,
    ClientClosed,
    CutOff,
    Delivered,
    Denied,
    Failed,
    InternalError,
    ItemOutcome,
    RateLimited,
    UnknownItem,
    UnknownTool,
    VendorError,
)
from proxy.request_context import RequestContext


class OpenCall(msgspec.Struct):
    """A call in progress. The tool and the credential are filled in when they are known."""

    id: uuid.UUID
    timestamp: datetime
    vendor: str
    tool: str
    credential_scope: str = ""
    credential_name: str = ""
    kind: str = CallKind.TOOL.value
    item: str = ""
    known_tool: str = ""  # the tool, once it is known to its vendor
    has_asked: bool = False  # the vendor works on the call, and has asked the caller something


def open_record(*, vendor: str, tool: str) -> OpenCall:
    now = clock.now()
    return OpenCall(ids.log_id_for(now), now, vendor, tool)


def open_item_record(*, vendor: str, kind: CallKind, item: str) -> OpenCall:
    """`item`: without parts that may hold a secret."""
    now = clock.now()
    return OpenCall(ids.log_id_for(now), now, vendor, "", kind=kind.value, item=item)


def set_tool(row: OpenCall, found: FoundTool) -> None:
    row.vendor, row.tool = found.vendor.slug, found.tool.vendor_name
    row.credential_scope, row.credential_name = found.credential.scope, found.credential.name
    row.known_tool = row.tool


def set_credential(row: OpenCall, vendor: str, credential: CredentialRef) -> None:
    row.vendor, row.credential_scope, row.credential_name = vendor, credential.scope, credential.name


def note_question(row: OpenCall, method: str) -> None:
    """The vendor asked the caller of this call. Never what it asked. A prompt or resource keeps its own `item`."""
    row.has_asked = True
    if row.kind != CallKind.TOOL.value:
        return
    noted = row.item.split(", ") if row.item else []
    if method not in noted:
        row.item = ", ".join([*noted, method])


async def record_intent(context: RequestContext, row: OpenCall) -> None:
    """For a writing call: if the process dies, its row stays `unknown`. Raises: AuditUnavailable; then send nothing."""
    await _write(context, _record(context, row, status=CallStatus.UNKNOWN))


async def record_outcome(context: RequestContext, row: OpenCall, outcome: ItemOutcome | ClientClosed | CutOff) -> str:
    """Returns the row's status. Raises: AuditUnavailable, and then the answer is 503."""
    status, code, size = _status_of(outcome)
    if row.has_asked and isinstance(outcome, Denied):  # the call was made: the rule ended it, and did not prevent it
        status = CallStatus.ERROR
    cached = context.cache is CacheStatus.HIT
    row.vendor = row.vendor or getattr(outcome, "vendor", "")
    if isinstance(outcome, Failed) and outcome.credential is not None:  # failed before the tool was found
        row.credential_scope, row.credential_name = outcome.credential.scope, outcome.credential.name
    record = _record(
        context,
        row,
        status=status,
        error_code=code,
        duration_ms=context.timing.total_ms(),
        vendor_ms=0 if cached else context.timing.vendor.ms,
        cached=cached,
        response_bytes=size,
    )
    await _write(context, record)
    return status._value_  # on the hot path: `value` is a Python call


async def _write(context: RequestContext, record: CallRecord) -> None:
    began_s = perf_counter()
    await context.runtime.audit.write(record)
    call_figures.count_commit(context, began_s)


def _record(
    context: RequestContext, row: OpenCall, *, status: str, **outcome_columns: Any
) -> CallRecord:  # columns of the outcome
    principal = context.caller.principal
    return CallRecord(
        id=row.id,
        timestamp=row.timestamp,
        org_id=principal.org_id,
        user_id=principal.subject,
        user_label=principal.label,
        vendor=row.vendor,
        tool=row.tool,
        kind=row.kind,
        item=row.item,
        source=context.source,
        status=status,
        credential_scope=row.credential_scope,
        credential_name=row.credential_name,
        client_id=principal.client_id,
        client_name=principal.client_name,
        ip_address=context.ip_address,
        request_id=context.request_id,
        request_bytes=context.request_bytes,
        **outcome_columns,
    )


async def record_rate_limited(context: RequestContext, refused: OpenCall) -> None:
    """Counted in one row per subject, organization and minute. Spec: D80, D146 · Raises: DatabaseUnavailable."""
    principal = context.caller.principal
    status, code, _ = _status_of(RateLimited(0))

    def first_row(row_id: uuid.UUID, minute: datetime) -> CallRecord:
        row = msgspec.structs.replace(refused, id=row_id, timestamp=minute)
        return _record(context, row, status=status, error_code=code, duration_ms=context.timing.total_ms())

    await context.runtime.rate_limited.record(principal.org_id, principal.subject, first_row)


def _status_of(outcome: ItemOutcome | ClientClosed | CutOff) -> tuple[CallStatus, str, int]:
    if isinstance(outcome, Delivered):
        size = len(outcome.raw_result)
        return (
            (CallStatus.ERROR, CallFault.TOOL_ERROR.value, size) if outcome.is_error else (CallStatus.SUCCESS, "", size)
        )
    if isinstance(outcome, Asked):
        return CallStatus.SUCCESS, "", outcome.size_bytes  # answered as it should; the retry has a row of its own
    if isinstance(outcome, VendorError):
        return CallStatus.ERROR, CallFault.VENDOR_ERROR.value, len(outcome.raw_error)
    if isinstance(outcome, Failed):
        return CallStatus.ERROR, outcome.fault.value, 0
    if isinstance(outcome, ClientClosed):
        return CallStatus.ERROR, CallFault.CLIENT_CLOSED.value, 0
    if isinstance(outcome, CutOff):
        return CallStatus.ERROR, CallFault.GATEWAY_STOPPED.value, 0
    if isinstance(outcome, InternalError):
        return CallStatus.ERROR, CallFault.INTERNAL_ERROR.value, 0
    if isinstance(outcome, Denied):
        return CallStatus.DENIED, outcome.denial.value, 0
    if isinstance(outcome, UnknownTool):
        return CallStatus.DENIED, CallFault.UNKNOWN_TOOL.value, 0
    if isinstance(outcome, UnknownItem):
        return CallStatus.DENIED, CallFault.UNKNOWN_ITEM.value, 0
    if isinstance(outcome, BadArguments):
        return CallStatus.DENIED, CallFault.BAD_ARGUMENTS.value, 0
    return CallStatus.DENIED, CallFault.RATE_LIMITED.value, 0

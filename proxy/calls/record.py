"""Every call leaves a row before its answer leaves: who, what, how it ended. Never arguments or results.

Spec: §6 · D80
"""

from __future__ import annotations

import time

from msgspec.structs import replace

from audit.call_record import CallRecord
from audit.call_status import CallStatus
from gateway.lib import clock, ids
from proxy.calls.find_tool import FoundTool
from proxy.exchange import Exchange
from proxy.outcomes import (
    BadArguments,
    Broken,
    CacheStatus,
    ClientClosed,
    Delivered,
    Denied,
    Failed,
    Outcome,
    RateLimited,
    UnknownTool,
    VendorError,
)


def open_record(exchange: Exchange, *, vendor: str, tool: str) -> CallRecord:
    """The row of a call that has not ended: status unknown until it does."""
    principal = exchange.caller.principal
    return CallRecord(
        id=ids.new_log_id(),
        timestamp=clock.now(),
        org_id=principal.org_id,
        user_id=principal.subject,
        user_label=principal.label,
        vendor=vendor,
        tool=tool,
        source=exchange.source.value,
        status=CallStatus.UNKNOWN.value,
        client_id=principal.client_id,
        client_name=principal.client_name,
        ip_address=exchange.ip_address,
        request_id=exchange.request_id,
        request_bytes=exchange.request_bytes,
    )


def about_tool(record: CallRecord, found: FoundTool) -> CallRecord:
    """The row, now that the tool and the credential are known."""
    credential = found.credential
    return replace(
        record,
        vendor=found.vendor.slug,
        tool=found.tool.vendor_name,
        credential_scope=credential.scope.value,
        credential_name=credential.name,
    )


async def record_intent(exchange: Exchange, record: CallRecord) -> None:
    """Commit that a writing call is about to be sent. If the process dies, the row stays with status unknown.

    Raises: AuditUnavailable, and then nothing is sent.
    """
    await exchange.runtime.audit.write(record)


async def record_outcome(exchange: Exchange, record: CallRecord, outcome: Outcome | ClientClosed) -> None:
    """Commit how the call ended.

    Raises: AuditUnavailable, and then the answer is 503: no answer without its row.
    """
    status, code, size = _ending(outcome)
    cached = exchange.cache is CacheStatus.HIT
    await exchange.runtime.audit.write(
        replace(
            record,
            vendor=record.vendor or getattr(outcome, "vendor", ""),
            status=status.value,
            error_code=code,
            duration_ms=exchange.timing.total_ms(),
            vendor_ms=0 if cached else exchange.timing.ms("vendor"),
            cached=cached,
            response_bytes=size,
        )
    )


async def record_rate_limited(exchange: Exchange, *, vendor: str, tool: str) -> None:
    """One row per caller and minute: a flood of refusals must not become a flood of rows. Spec: D80"""
    minute = int(time.time() // 60)
    subject = exchange.caller.principal.subject
    noted = exchange.runtime.refusals_noted
    if noted.get(subject) == minute:
        return
    if len(noted) > 10_000:
        noted.clear()
    noted[subject] = minute
    await record_outcome(exchange, open_record(exchange, vendor=vendor, tool=tool), RateLimited(0))


def _ending(outcome: Outcome | ClientClosed) -> tuple[CallStatus, str, int]:
    if isinstance(outcome, Delivered):
        size = len(outcome.raw_result)
        return (CallStatus.ERROR, "tool_error", size) if outcome.is_error else (CallStatus.SUCCESS, "", size)
    if isinstance(outcome, VendorError):
        return CallStatus.ERROR, "vendor_error", len(outcome.raw_error)
    if isinstance(outcome, Failed):
        return CallStatus.ERROR, outcome.fault.value, 0
    if isinstance(outcome, ClientClosed):
        return CallStatus.ERROR, "client_closed", 0
    if isinstance(outcome, Broken):
        return CallStatus.ERROR, "internal_error", 0
    if isinstance(outcome, Denied):
        return CallStatus.DENIED, outcome.denial.value, 0
    if isinstance(outcome, UnknownTool):
        return CallStatus.DENIED, "unknown_tool", 0
    if isinstance(outcome, BadArguments):
        return CallStatus.DENIED, "bad_arguments", 0
    return CallStatus.DENIED, "rate_limited", 0

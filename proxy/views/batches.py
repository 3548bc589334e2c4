"""Batches, which two protocol versions have: each message is answered as if it came alone, in one array. Spec: D107"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from django.conf import settings
from django.http import HttpResponse

from audit.writer import AuditUnavailable
from gateway.coordination.store import CoordinationUnavailable
from oauth_ext.bearer import InvalidBearer
from proxy.protocol import jsonrpc
from proxy.snapshot import SnapshotUnavailable
from proxy.views import answers
from proxy.views.answers import Refusal

_UNAVAILABLE = (SnapshotUnavailable, AuditUnavailable, CoordinationUnavailable)


async def answer_batch(
    entries: Iterable[tuple[jsonrpc.Message, int]],
    answer: Callable[[jsonrpc.Request, int], Awaitable[bytes]],
    keep: Callable[[int], None],
) -> HttpResponse:
    """The answers to the messages of `entries` in their order, or 202 if none of them wants one.

    `answer` is told how many bytes its message has, `keep` how many the answers have so far: all are held until the
    last one is there. Once they have as many as one vendor's answer may, requests are refused and not run.

    What refuses the first request refuses the whole batch. Once one was answered, a refusal is the later one's own:
    what was done must be told.   Raises: as `answer`.
    """
    parts: list[bytes] = []
    has_answered = False
    kept = 0
    for message, size in entries:
        if isinstance(message, jsonrpc.Invalid):
            parts.append(jsonrpc.error(message.id, message.code, message.message))
        elif isinstance(message, jsonrpc.Request):
            try:
                if kept > settings.VENDOR_REPLY_BYTES:
                    raise answers.batch_full()
                parts.append(await answer(message, size))
            except (Refusal, InvalidBearer, *_UNAVAILABLE) as fault:
                if not has_answered:
                    raise
                parts.append(_refused(message.id, fault))
            has_answered = True
            kept += len(parts[-1])
            keep(kept)
    return answers.json_answer(jsonrpc.batch_bytes(parts)) if parts else answers.accepted()


def _refused(message_id: jsonrpc.MessageId, fault: Exception) -> bytes:
    """What would have been a status of its own, as an entry."""
    if isinstance(fault, InvalidBearer):
        error, text, headers = "invalid_token", fault.reason, {}
    else:
        refusal = fault if isinstance(fault, Refusal) else answers.unavailable()
        error, text, headers = refusal.error, refusal.description, refusal.headers
    data: dict[str, object] = {"reason": error}
    if "Retry-After" in headers:
        data["retryAfter"] = int(headers["Retry-After"])
    return jsonrpc.error(message_id, jsonrpc.INTERNAL_ERROR, text, data)

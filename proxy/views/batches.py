"""JSON-RPC batches: the answers to all messages in one array. Spec: D107"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from django.conf import settings
from django.http import HttpResponse

from audit.writer import AuditUnavailable
from gateway.coordination.store import CoordinationUnavailable
from oauth_ext.bearer import InvalidBearer
from proxy.caller_cache import DatabaseUnavailable
from proxy.protocol import jsonrpc
from proxy.views import responses
from proxy.views.responses import HttpError

_UNAVAILABLE = (DatabaseUnavailable, AuditUnavailable, CoordinationUnavailable)


async def answer_batch(
    entries: Iterable[tuple[jsonrpc.Message, int]],
    answer: Callable[[jsonrpc.Request, int], Awaitable[bytes]],
    count_bytes: Callable[[int], None],
) -> HttpResponse:
    """The answers in order, or 202 without any. `count_bytes` gets the bytes of all answers so far. Raises: as
    `answer`."""
    parts: list[bytes] = []
    has_answered = False
    size_bytes = 0
    for message, size in entries:
        if isinstance(message, jsonrpc.Invalid):
            parts.append(jsonrpc.error(message.id, message.code, message.message))
        elif isinstance(message, jsonrpc.Request):
            try:
                if size_bytes > settings.VENDOR_REPLY_BYTES:
                    raise responses.batch_full()  # all answers stay in memory, so later requests are not run
                parts.append(await answer(message, size))
            except (HttpError, InvalidBearer, *_UNAVAILABLE) as fault:
                # A refusal of the first request refuses the batch. Later ones stay entries: earlier requests have run.
                if not has_answered:
                    raise
                parts.append(_error_entry(message.id, fault))
            has_answered = True
            size_bytes += len(parts[-1])
            count_bytes(size_bytes)
    return responses.json_response(jsonrpc.batch_bytes(parts)) if parts else responses.accepted()


def _error_entry(message_id: jsonrpc.MessageId, fault: Exception) -> bytes:
    """The entry for a refusal that alone would be an HTTP status."""
    if isinstance(fault, InvalidBearer):
        error, text, headers = "invalid_token", fault.reason, {}
    else:
        refusal = fault if isinstance(fault, HttpError) else responses.unavailable()
        error, text, headers = refusal.error, refusal.description, refusal.headers
    data: dict[str, object] = {"reason": error}
    if "Retry-After" in headers:
        data["retryAfter"] = int(headers["Retry-After"])
    return jsonrpc.error(message_id, jsonrpc.INTERNAL_ERROR, text, data)

"""JSON-RPC batches: which are read, and the answers to all messages in one array. Spec: protocol.md A.4 · D107"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from django.conf import settings
from django.http import HttpResponse

from audit.pending_record import AuditUnavailable
from gateway.coordination.store import CoordinationUnavailable
from oauth_ext.bearer import InvalidBearer
from proxy.hot_path_database import DatabaseUnavailable
from proxy.protocol import jsonrpc, versions
from proxy.sessions.client_session import SessionEnded
from proxy.views import responses
from proxy.views.responses import HttpError

_ENDED = (InvalidBearer, SessionEnded)
_UNAVAILABLE = (DatabaseUnavailable, AuditUnavailable, CoordinationUnavailable)


def read_batch(items: list[Any], version: str) -> list[jsonrpc.Message] | jsonrpc.Invalid:
    """The messages in order, or `Invalid` for the whole batch. `version`: the protocol version of the request."""
    if not versions.batches_allowed(version):
        return jsonrpc.Invalid(None, jsonrpc.INVALID_REQUEST, "Batches are not part of this protocol version.")
    if not items:
        return jsonrpc.Invalid(None, jsonrpc.INVALID_REQUEST, "A batch must not be empty.")
    if len(items) > settings.BATCH_ENTRIES:
        text = f"A batch may hold at most {settings.BATCH_ENTRIES} messages."
        return jsonrpc.Invalid(None, jsonrpc.INVALID_REQUEST, text)
    return [_read_entry(item) for item in items]


def _read_entry(item: object) -> jsonrpc.Message:
    message = jsonrpc.parse_message(item)
    if isinstance(message, jsonrpc.Request) and message.method == "initialize":
        # The handshake must come first, and alone.
        return jsonrpc.Invalid(message.id, jsonrpc.INVALID_REQUEST, "initialize must not be part of a batch.")
    return message


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
            except (HttpError, *_ENDED, *_UNAVAILABLE) as fault:
                # A refusal of the first request refuses the batch. Later ones stay entries: earlier requests have run.
                if not has_answered:
                    raise
                parts.append(_error_entry(message.id, fault))
            has_answered = True
            size_bytes += len(parts[-1])
            count_bytes(size_bytes)
    return responses.json_response(jsonrpc.batch_bytes(parts)) if parts else responses.accepted()


def _refusal(fault: Exception) -> HttpError:
    if isinstance(fault, SessionEnded):
        return responses.unknown_session()
    return fault if isinstance(fault, HttpError) else responses.unavailable()


def _error_entry(message_id: jsonrpc.MessageId, fault: Exception) -> bytes:
    """The entry for a refusal that alone would be an HTTP status."""
    if isinstance(fault, InvalidBearer):
        error, text, headers = "invalid_token", fault.reason, {}
    else:
        refusal = _refusal(fault)
        error, text, headers = refusal.error, refusal.description, refusal.headers
    data: dict[str, object] = {"reason": error}
    if "Retry-After" in headers:
        data["retryAfter"] = int(headers["Retry-After"])
    return jsonrpc.error(message_id, jsonrpc.INTERNAL_ERROR, text, data)

"""The body of a call: read once its caller is known, counted by size, and parsed as strict JSON."""

from __future__ import annotations

import asyncio
from functools import partial

from django.conf import settings

from gateway.hot_path_request import HotPathRequest
from gateway.lib import strict_json
from gateway.middleware.refusal import Refusal
from proxy.request_context import RequestContext
from proxy.vendors import fair_scheduler
from proxy.views import responses
from proxy.views.responses import HttpError
from proxy.views.route import count

LARGE_BODY_BYTES = 64 * 1024  # parsing from here on would delay other calls
BODY_SLOT_WAIT_S = 10.0  # until a large body is parsed, in line with other organizations'


def require_json(request: HotPathRequest) -> None:
    if request.content_type != "application/json":
        raise HttpError(415, "unsupported_media_type", "Send Content-Type: application/json.")


async def read_json(context: RequestContext, request: HotPathRequest) -> object:
    """The body as JSON. Raises: StrictJSONError; HttpError with 408, 413, 429 or 503; ClientDisconnected; as
    `admit`."""
    is_here_and_small = request.incoming is None and len(request.body) < LARGE_BODY_BYTES
    body = request.body if is_here_and_small else await _load_body(context, request)
    context.request_bytes = len(body)
    if len(body) < LARGE_BODY_BYTES:
        return strict_json.loads(body, max_depth=settings.JSON_DEPTH)
    # In a thread that serves organizations round robin.
    work = partial(strict_json.loads, body, max_depth=settings.JSON_DEPTH)
    deadline = asyncio.get_running_loop().time() + BODY_SLOT_WAIT_S
    try:
        return await fair_scheduler.run_in_thread(context.caller.principal.org_id, work, deadline)
    except TimeoutError:
        raise responses.overloaded() from None


async def _load_body(context: RequestContext, request: HotPathRequest) -> bytes:
    declared = 0 if request.incoming is None else request.incoming.declared_bytes or 0
    # Counted before it is read, if its length is declared.
    if declared >= LARGE_BODY_BYTES:
        await _count_large(context, declared)
    try:
        body = await request.load_body()
    except Refusal as refused:
        raise responses.body_refused(refused) from None
    if len(body) >= LARGE_BODY_BYTES > declared:
        await _count_large(context, len(body))
    return body


async def _count_large(context: RequestContext, size_bytes: int) -> None:
    """Count the request for its caller (BACKSTOP) and its size for its organization (LARGE_BODIES).

    Raises: HttpError with 429; as `admit`.
    """
    await count(context)
    key, units = f"org:{context.caller.principal.org_id}", -(-size_bytes // settings.BODY_UNIT_BYTES)
    with context.timing.auth:
        admission = await context.runtime.store.charge(settings.LARGE_BODIES, key, units)
    if not admission.allowed:
        raise responses.too_many_large_bodies(admission)

"""One request of a call to its vendor, and its answer as an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from credentials.resolve import CredentialRef
from gateway.catalog.vendor import Vendor
from proxy.cache.result_cache import VendorOutcome
from proxy.calls import vendor_errors
from proxy.calls.open_destination import after_rejection, refused_scopes
from proxy.outcomes import Delivered, Denied, Failed
from proxy.progress_relay import ProgressRelay
from proxy.protocol import replies
from proxy.protocol.modern.input_required import InputRequired
from proxy.request_context import RequestContext
from proxy.vendors import errors
from proxy.vendors.destination import Destination
from proxy.vendors.errors import CallEnded, VendorProblem
from proxy.vendors.send import send_request
from proxy.vendors.tool_request import ToolRequest


async def send(
    context: RequestContext,
    vendor: Vendor,
    credential: CredentialRef,
    destination: Destination,
    method: str,
    params: Mapping[str, Any],
    *,
    relay: ProgressRelay | None,
    is_repeatable: bool,
    tool: ToolRequest | None = None,
    on_asked: Callable[[InputRequired], Awaitable[VendorOutcome]] | None = None,
    is_repeated: bool = False,
) -> VendorOutcome:
    """`is_repeatable`, `tool`: as `send_request`. `on_asked`: the outcome of a vendor's question; None: it is a fault.

    A token that the vendor no longer knows is renewed, and the request is sent once more.
    """
    deadline = asyncio.get_running_loop().time() + vendor.timeout_seconds
    try:
        reply = await send_request(
            context.runtime.pool,
            destination,
            method,
            params,
            deadline=deadline,
            timing=context.timing,
            relay=relay,
            is_repeatable=is_repeatable,
            tool=tool,
        )
    except CallEnded as ended:
        return ended.denied
    except VendorProblem as problem:
        if credential.is_connection and problem.is_rejection and not is_repeated:
            again = await after_rejection(context, vendor, credential)
            if isinstance(again, Denied):
                return again
            if again is not None:
                renewed, place = again
                return await send(
                    *(context, vendor, renewed, place.as_apart_as(destination), method, params),
                    relay=relay,
                    is_repeatable=is_repeatable,
                    tool=tool,
                    on_asked=on_asked,
                    is_repeated=True,
                )
        if credential.is_connection and problem.scopes_wanted:
            return await refused_scopes(context, vendor, credential, destination, problem.scopes_wanted)
        return Failed(vendor.slug, problem.fault, problem.detail, problem.retry_after_s)
    if isinstance(reply, replies.VendorResult):
        if reply.is_error and isinstance(reply, InputRequired):
            if on_asked is not None:
                return await on_asked(reply)
            unasked = errors.bad_response("it asks for something that cannot be answered here")
            return Failed(vendor.slug, unasked.fault, unasked.detail)
        return Delivered(reply.raw_result, reply.is_error, reply.is_personal)
    return vendor_errors.for_caller(context, vendor, reply)


def with_meta(context: RequestContext, params: dict[str, Any], meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """`params` with what the vendor may see of the caller's `_meta`, and the trace."""
    sent = meta if context.trace is None else {**(meta or {}), **context.trace.for_vendor()}
    if sent:
        params["_meta"] = sent
    return params

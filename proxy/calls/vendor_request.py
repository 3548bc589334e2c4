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
from proxy.vendors.rpc_request import RpcRequest
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
    """`relay`, `is_repeatable`, `tool`: of `RpcRequest`. `on_asked`: the outcome of a vendor's question; None: a fault.

    A token that the vendor no longer knows is renewed, and the request is sent once more.
    """
    deadline = asyncio.get_running_loop().time() + vendor.timeout_seconds
    request = RpcRequest(
        method, params, deadline, relay=relay, timing=context.timing, tool=tool, is_repeatable=is_repeatable
    )
    try:
        reply = await send_request(context.runtime.pool, destination, request)
    except CallEnded as ended:
        return ended.denied
    except VendorProblem as problem:
        may_renew = credential.is_connection and problem.is_rejection and not is_repeated
        again = await after_rejection(context, vendor, credential) if may_renew else None
        if isinstance(again, Denied):
            return again
        if again is None:
            return await _after_problem(context, vendor, credential, destination, problem)
        renewed, place = again
        return await send(
            *(context, vendor, renewed, place.as_apart_as(destination), method, params),
            relay=relay,
            is_repeatable=is_repeatable,
            tool=tool,
            on_asked=on_asked,
            is_repeated=True,
        )
    if isinstance(reply, replies.RpcError):
        return vendor_errors.for_caller(context, vendor, reply)
    if reply.is_error and isinstance(reply, InputRequired):
        if on_asked is None:
            return _failed(vendor, errors.bad_response("it asks for something that cannot be answered here"))
        return await on_asked(reply)
    return Delivered(reply.raw_result, reply.is_error, reply.is_personal)


async def _after_problem(
    context: RequestContext,
    vendor: Vendor,
    credential: CredentialRef,
    destination: Destination,
    problem: VendorProblem,
) -> VendorOutcome:
    if credential.is_connection and problem.scopes_wanted:
        return await refused_scopes(context, vendor, credential, destination, problem.scopes_wanted)
    return _failed(vendor, problem)


def _failed(vendor: Vendor, problem: VendorProblem) -> Failed:
    return Failed(vendor.slug, problem.fault, problem.detail, problem.retry_after_s)


def with_meta(context: RequestContext, params: dict[str, Any], meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """`params` with what the vendor may see of the caller's `_meta`, and the trace."""
    sent = meta if context.trace is None else {**(meta or {}), **context.trace.for_vendor()}
    if sent:
        params["_meta"] = sent
    return params

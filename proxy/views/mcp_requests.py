"""The parts of a request that all protocol versions read alike: vendor, tool call, scope, names. Spec: D105-D111"""

from __future__ import annotations

from typing import Any

from gateway.catalog.vendor import TOOL_NAME_MAX_CHARACTERS, Vendor
from proxy.calls.ask_item import ItemCall
from proxy.calls.call_tool import ToolCall
from proxy.calls.decide import may_use_vendor
from proxy.calls.list_tools import may_list
from proxy.calls.no_access_reasons import why_no_vendor
from proxy.outcomes import Denial, Denied
from proxy.progress_relay import ProgressRelay
from proxy.protocol import item_requests, progress
from proxy.protocol.modern import input_required
from proxy.protocol.trace_context import take_parent
from proxy.request_context import RequestContext
from proxy.views import deprecation, responses
from proxy.views.progress_response import accepts_events
from proxy.views.route import Route


def tool_call(
    context: RequestContext, vendor: Vendor | None, params: dict[str, Any], accept: str | None = None
) -> ToolCall:
    """With a relay if the caller asks for progress and accepts event streams."""
    name, arguments, fault = params.get("name"), params.get("arguments"), ""
    if not isinstance(name, str) or not name or len(name) > TOOL_NAME_MAX_CHARACTERS:
        name, fault = "", "params.name must be a tool name"
    elif not isinstance(arguments, dict | None):
        fault = "params.arguments must be an object"
    # The vendor does not get the caller's token: callers share sessions, and their tokens may be equal.
    token, meta = progress.split_meta(params.get("_meta"))
    if context.trace is not None and meta is not None:
        context.trace.adopt_late(take_parent(meta))  # the vendor gets ours in its place
    session = context.session
    relay = _relay(token, accept, has_session=session is not None)
    return ToolCall(
        name,
        {} if fault else arguments or {},
        vendor=vendor,
        meta=meta or None,
        relay=relay,
        fault=fault,
        capabilities=None if session is None or relay is None else session.capabilities,
    )


def _relay(token: progress.ProgressToken | None, accept: str | None, *, has_session: bool) -> ProgressRelay | None:
    """For a caller that reads event streams, and wants progress or may be asked something."""
    if (token is None and not has_session) or not accepts_events(accept):
        return None
    # Log messages pass with progress; without, once the session has a level.
    return ProgressRelay(progress.Wanted(token, None if token is None else progress.LOWEST_LOG_LEVEL))


def item_call(
    context: RequestContext, vendor: Vendor | None, method: str, params: dict[str, Any], accept: str | None = None
) -> ItemCall:
    """For the methods of `item_kinds.CALLS` and `item_kinds.SUBSCRIPTIONS`."""
    name, is_address, sent, fault = item_requests.read(method, params)
    if context.request_bytes > item_requests.MAX_REQUEST_BYTES:
        sent, fault = {}, f"The request has more than {item_requests.MAX_REQUEST_BYTES} bytes"
    token, meta = progress.split_meta(params.get("_meta"))
    if context.trace is not None and meta is not None:
        context.trace.adopt_late(take_parent(meta))
    session = context.session if method in input_required.MAY_ASK else None
    relay = _relay(token, accept, has_session=session is not None)
    return ItemCall(
        *(method, name, is_address, sent),
        vendor=vendor,
        meta=meta or None,
        relay=relay,
        fault=fault,
        capabilities=None if session is None or relay is None else session.capabilities,
    )


def vendor_of(context: RequestContext, route: Route) -> Vendor | None:
    """None at the unified endpoint. Raises: HttpError with 404 or 410."""
    if route.vendor is None:
        return None
    deprecation.refuse_when_gone()
    known = context.caller.catalog.get(route.vendor)
    if known is None:
        raise responses.HttpError(404, "not_found", "There is no such vendor.")
    return known


def check_scope(context: RequestContext, route: Route, vendor: Vendor) -> None:
    """Refuses a token of another vendor from the first request on. Raises: HttpError with 403."""
    verdict = may_use_vendor(context.caller, vendor)
    if isinstance(verdict, Denied) and verdict.denial is Denial.SCOPE:
        raise responses.insufficient_scope(route.resource_path, verdict.scope_needed, verdict.text)


def vendor_names(context: RequestContext, vendor: Vendor | None) -> tuple[list[str], str]:
    """The vendors that the caller may use, and for a caller without any the reasons, in sentences."""
    vendors = [vendor] if vendor else context.caller.catalog.all()
    names = [one.name for one in vendors if may_list(context, one)]
    return names, "" if names else why_no_vendor(context.caller, vendors)

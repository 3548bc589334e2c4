"""POST /v1/:vendor/cli and GET /v1/:vendor/cli/schema: one tool call, or the list of commands, in plain JSON.

Spec: §4.14, §7 · D99-D102, D113
"""

from __future__ import annotations

import asyncio
from collections.abc import Container
from functools import partial
from typing import Any

import msgspec
from django.http import HttpResponse
from django.http.response import HttpResponseBase

from audit.call_status import CallSource
from gateway.catalog.vendor import Vendor
from gateway.hot_path_request import HotPathRequest
from gateway.lib import strict_json
from gateway.middleware.body_parts import ClientDisconnected
from proxy.calls.call_tool import ToolCall, call_tool, refuse_unknown_vendor
from proxy.calls.decide import may_call_tool, may_use_vendor
from proxy.calls.list_tools import vendor_index
from proxy.outcomes import Delivered, Denied
from proxy.protocol import cli_request, cli_schema
from proxy.request_context import RequestContext
from proxy.vendors import fair_scheduler
from proxy.vendors.tool_list import ToolList
from proxy.views import responses
from proxy.views.body import read_json, require_json
from proxy.views.cli_outcomes import cli_response, forbidden
from proxy.views.responses import HttpError
from proxy.views.route import Route, ServedRequest, count


async def cli(request: HotPathRequest, vendor: str) -> HttpResponseBase:
    route = _route("POST", vendor, reports_cache=True)
    served = ServedRequest(request, route)
    try:
        context = await served.open()
        if context is None:
            return served.preflight()
        require_json(request)
        response = await _run_command(context, request, route, vendor)
    except ClientDisconnected:
        raise
    except Exception as fault:
        response = await served.refusal(fault)
    return served.finish(response)


async def schema(request: HotPathRequest, vendor: str) -> HttpResponseBase:
    route = _route("GET", vendor)
    served = ServedRequest(request, route)
    try:
        context = await served.open()
        if context is None:
            return served.preflight()
        await count(context)
        known = context.caller.catalog.get(vendor)
        if known is None:  # as for a vendor without credentials: the CLI has no 404 (D99)
            raise HttpError(403, "no_credentials", "There are no credentials for this vendor.")
        response = responses.json_response(msgspec.json.encode(await _schema(context, route, known)))
    except Exception as fault:
        response = await served.refusal(fault)
    return served.finish(response)


async def _run_command(context: RequestContext, request: HotPathRequest, route: Route, vendor: str) -> HttpResponse:
    try:
        parsed = cli_request.parse_cli_request(await read_json(context, request))
    except (strict_json.StrictJSONError, cli_request.CliRequestError) as fault:
        raise HttpError(400, "invalid_request", str(fault)) from fault
    known = context.caller.catalog.get(vendor)
    if known is None:
        return cli_response(route, await refuse_unknown_vendor(context, vendor, parsed.tool))
    outcome = await call_tool(context, ToolCall(parsed.tool, parsed.args, vendor=known, cli=True))
    size_bytes = len(outcome.raw_result) if isinstance(outcome, Delivered) else 0
    # A large result takes long to convert: beside the event loop.
    work = partial(cli_response, route, outcome)
    return await fair_scheduler.run_small_inline(context.caller.principal.org_id, work, size_bytes)


async def _schema(context: RequestContext, route: Route, vendor: Vendor) -> dict[str, Any]:
    caller = context.caller
    verdict = may_use_vendor(caller, vendor)
    if isinstance(verdict, Denied):
        raise forbidden(route, verdict)
    deadline = asyncio.get_running_loop().time() + vendor.timeout_seconds
    with context.timing.vendor:
        index = await vendor_index(context, vendor, deadline=deadline)
    if isinstance(index, str):
        raise HttpError(502, index, f"{vendor.name} did not list its tools: {index}.")
    # Only commands that the caller may run.
    principal, listed = caller.principal, index.content
    rights = (principal, caller.organization, vendor)
    allowed = {
        name
        for name in listed.definitions
        if may_call_tool(*rights, name, is_read_only=listed.policies[name].read_only) is None
    }
    work = partial(_commands, vendor.tool_prefix, listed, allowed)
    commands = await fair_scheduler.run_small_inline(principal.org_id, work, listed.received_bytes)
    return {"vendor": vendor.slug, "vendorName": vendor.name, "commands": commands}


def _commands(prefix: str, listed: ToolList, allowed: Container[str]) -> list[dict[str, Any]]:
    return cli_schema.commands(prefix, map(listed.definition, listed.definitions), allowed=allowed)


def _route(method: str, vendor: str, *, reports_cache: bool = False) -> Route:
    return Route(
        *(CallSource.CLI, method, f"/v1/{vendor}/mcp"),
        scope=f"mcp:{vendor}",
        vendor=vendor,
        reports_cache=reports_cache,
    )

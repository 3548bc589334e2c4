"""`/v1/mcp?tools=search`: the calls that the gateway answers itself, and who has this list.

docs/decisions/0103, 0116 · Contract: 9
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.hot_path_request import HotPathRequest
from gateway.lib.sentences import plain
from proxy.calls.search_tools import describe_tool, search_tools
from proxy.protocol import compact_tools
from proxy.protocol.compact_tools import BadCompactCall, Search, text_result
from proxy.request_context import RequestContext
from proxy.views.responses import HttpError
from proxy.views.route import Route


def is_asked_for(request: HotPathRequest) -> bool:
    """Whether the query has the parameter `tools`."""
    query = request.META["QUERY_STRING"]
    # Not taken apart: the caller is not authenticated yet, and a query may be long.
    return bool(query) and ("&tools=" in (whole := f"&{query}&") or "&tools&" in whole)


def is_whole_list_asked_for(request: HotPathRequest) -> bool:
    return "&tools=all&" in f"&{request.META['QUERY_STRING']}&"


def applies(context: RequestContext, route: Route) -> bool:
    """Whether the caller gets the short list: the address says so, or else the agent's setting as it is known now."""
    return context.caller.principal.lists_compactly if route.is_compact is None else route.is_compact


def check_query(request: HotPathRequest) -> None:
    """Raises: HttpError with 400."""
    if _asked_lists(request.META["QUERY_STRING"]) not in (["search"], ["all"]):
        raise HttpError(400, "invalid_request", "The parameter tools can only be search or all.")


def _asked_lists(query: str) -> list[str]:
    pairs = (pair.partition("=") for pair in query.split("&"))
    return [value for name, _, value in pairs if name == "tools"]


async def answer(context: RequestContext, params: dict[str, Any]) -> dict[str, Any]:
    """The result of a call of one of the compact tools; a call of another tool is not one."""
    try:
        asked = compact_tools.read(params)
    except BadCompactCall as fault:
        return text_result(str(fault), is_error=True)
    if isinstance(asked, Search):
        return await _search(context, asked)
    definition = await describe_tool(context, asked.name)
    if definition is None:
        text = (
            f"You have no tool with this name: {asked.name}. {compact_tools.SEARCH} finds the tools that you may call."
        )
        return text_result(text, is_error=True)
    return text_result(definition.decode())


async def _search(context: RequestContext, asked: Search) -> dict[str, Any]:
    found = await search_tools(context, asked)
    # Of a model's context, every byte counts: the text is the whole answer.
    answered: dict[str, Any] = {"tools": found.tools}
    if found.unavailable:
        answered["unavailable"] = found.unavailable
    if not found.tools:
        answered["hint"] = "No tool has these words. Try other words, or fewer."
    return text_result(msgspec.json.encode(answered, enc_hook=plain).decode())

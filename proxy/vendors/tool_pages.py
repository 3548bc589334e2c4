"""Asks a vendor for all pages of its tool list."""

from __future__ import annotations

from msgspec import Raw

from proxy.protocol import replies, tool_definitions
from proxy.vendors import errors
from proxy.vendors.destination import Destination
from proxy.vendors.pool import SessionPool
from proxy.vendors.rpc_request import RpcRequest
from proxy.vendors.send import send_request
from proxy.vendors.tool_list import MAX_LIST_BYTES


async def fetch_pages(
    pool: SessionPool, destination: Destination, deadline: float, max_pages: int
) -> tuple[list[Raw], int]:
    """The unparsed tools of all pages, and their bytes. Raises: VendorProblem."""
    listed: list[Raw] = []
    size = 0
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(max_pages):
        params = {} if cursor is None else {"cursor": cursor}
        answer = await send_request(pool, destination, RpcRequest("tools/list", params, deadline))
        if isinstance(answer, replies.RpcError):
            raise errors.bad_response("it refused to list its tools")
        size += len(answer.raw_result)
        if size > MAX_LIST_BYTES:
            raise errors.bad_response("its tool list is too large")
        page = _page(answer)
        listed.extend(page.tools)
        if page.next_cursor is None or len(listed) > tool_definitions.MAX_TOOLS:
            return listed, size
        if page.next_cursor in seen:
            raise errors.bad_response("its tool list never ends")
        seen.add(page.next_cursor)
        cursor = page.next_cursor
    raise errors.bad_response("its tool list has too many pages")


def _page(answer: replies.VendorResult) -> replies.RawToolsPage:
    try:
        return replies.raw_tools_page(answer.raw_result)
    except replies.BadVendorReply as fault:
        raise errors.bad_response(fault.reason) from fault

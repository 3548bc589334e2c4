"""A request to a vendor in words."""

from __future__ import annotations

from proxy.vendors.rpc_request import RpcRequest


def test_its_text_holds_nothing_of_the_caller() -> None:
    request = RpcRequest("tools/call", {"name": "acme_search", "arguments": {"text": "private"}}, 1.0)
    assert repr(request) == "RpcRequest('tools/call')"


def test_it_is_named_by_its_tool_or_else_by_its_method() -> None:
    assert RpcRequest("tools/call", {"name": "acme_search"}, 1.0).name == "acme_search"
    assert RpcRequest("tools/list", {}, 1.0).name == "tools/list"

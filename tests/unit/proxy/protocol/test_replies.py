"""Messages of vendors: what they are, what is no reply at all, and results as the CLI shows them."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proxy.protocol import replies
from proxy.protocol.replies import (
    NO_ERROR_TEXT,
    BadVendorReply,
    RpcError,
    ToolsPage,
    VendorNotification,
    VendorRequest,
    VendorResult,
    cli_content,
    error_text,
    parse_message,
    protocol_version,
    tools_page,
)
from tests.unit.proxy.protocol.schemas import JSON

DEEP = 100_000


def message(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0"} | members).encode()


def raw(**members: Any) -> bytes:
    return json.dumps(members).encode()


def text(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value}


def reason_for(data: bytes) -> str:
    with pytest.raises(BadVendorReply) as refused:
        parse_message(data)
    return refused.value.reason


@pytest.mark.parametrize(
    "raw_result",
    [
        b"{}",
        b'{"content":[], "x": 1.00, "big": 123456789012345678901234567890, "e": 1E400}',
        b'{\r\n "content" : [ {"type":"text","text":"\\u00e9\\/\\ud83d\\ude00"} ]\n}',
        '{"structuredContent":{"é":"\u2028"}}'.encode(),
        b'{"a":1,"a":2}',
    ],
)
def test_a_result_stays_the_bytes_it_came_as(raw_result: bytes) -> None:
    data = b' {"jsonrpc": "2.0", "result" : %b , "id": 7}\n' % raw_result
    assert parse_message(data) == VendorResult(7, raw_result, is_error=False)


@pytest.mark.parametrize("message_id", [0, 7, -1, 10**30, "7", ""])
def test_ids_keep_their_type(message_id: str | int) -> None:
    assert parse_message(message(id=message_id, result={})) == VendorResult(message_id, b"{}", is_error=False)


@pytest.mark.parametrize(("flag", "is_error"), [(True, True), (False, False), (None, False)])
def test_a_tool_that_failed_is_distinguished(flag: bool | None, is_error: bool) -> None:
    read = parse_message(message(id=1, result={"isError": flag}))
    assert isinstance(read, VendorResult)
    assert read.is_error is is_error


def test_a_failure_cannot_hide_behind_an_escape() -> None:
    assert parse_message(b'{"jsonrpc":"2.0","id":1,"result":{"is\\u0045rror":true}}') == VendorResult(
        1, b'{"is\\u0045rror":true}', is_error=True
    )


@pytest.mark.parametrize("message_id", [4, "server-error", None])
def test_an_error(message_id: str | int | None) -> None:
    error = b'{"code": -32602, "message": "no", "data": {"x": 1.0}}'
    data = b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (json.dumps(message_id).encode(), error)
    assert parse_message(data) == RpcError(message_id, -32602, "no", error)


def test_an_error_may_come_without_id() -> None:
    assert parse_message(message(error={"code": 1, "message": ""})) == RpcError(
        None, 1, "", b'{"code": 1, "message": ""}'
    )


def test_null_counts_as_absent_beside_the_other() -> None:
    assert parse_message(message(id=1, result={}, error=None)) == VendorResult(1, b"{}", is_error=False)
    assert isinstance(parse_message(message(id=1, result=None, error={"code": 1, "message": "no"})), RpcError)


def test_a_notification_is_kept_whole() -> None:
    data = message(method="notifications/progress", params={"progressToken": 1, "progress": 0.5})
    assert parse_message(data) == VendorNotification("notifications/progress", data)


@pytest.mark.parametrize("message_id", [3, "3"])
def test_a_request_of_the_vendor(message_id: str | int) -> None:
    data = message(id=message_id, method="elicitation/create", params={})
    assert parse_message(data) == VendorRequest(message_id, "elicitation/create", data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is not JSON"),
        (b"<html><body>502</body></html>", "it is not JSON"),
        (b"{bad", "it is not JSON"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}', "it is not JSON"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":"\\ud800"}}', "it is not JSON"),
        (b'{"jsonrpc":"2.0","id":1,"result":{} x}', "it is not JSON"),
        (message(id=1, result={}) + b"{}", "it is not JSON"),
        (b"\xef\xbb\xbf" + message(id=1, result={}), "it is not JSON"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}', "it is not UTF-8"),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"x":"\xed\xa0\x80"}', "it is not UTF-8"),
        (b"[%b]" % message(id=1, result={}), "it is no JSON-RPC message"),
        (b"null", "it is no JSON-RPC message"),
        (b'"pong"', "it is no JSON-RPC message"),
        (b'{"id":1,"result":{}}', "it is no JSON-RPC message"),
        (message(id=1.5, result={}), "it is no JSON-RPC message"),
        (message(id=True, result={}), "it is no JSON-RPC message"),
        (message(id=[1], result={}), "it is no JSON-RPC message"),
        (message(id=1, method=5), "it is no JSON-RPC message"),
        (message(jsonrpc=2.0, id=1, result={}), "it is no JSON-RPC message"),
        (message(jsonrpc="1.0", id=1, result={}), "it is not JSON-RPC 2.0"),
        (message(id=1), "it must have either a result or an error"),
        (message(id=1, result=None), "it must have either a result or an error"),
        (message(id=1, result={}, error={"code": 1, "message": "x"}), "it must have either a result or an error"),
        (message(id=1, method="x", result={}), "it is a request and a response at once"),
        (message(id=1, method="x", error={"code": 1, "message": "x"}), "it is a request and a response at once"),
        (message(result={}), "its result has no id"),
        (message(id=None, result={}), "its result has no id"),
        (message(id=None, method="x"), "its request has no id"),
        (message(id=1, result=[]), "its result is malformed"),
        (message(id=1, result="ok"), "its result is malformed"),
        (message(id=1, result={"isError": "true"}), "its result is malformed"),
        (message(id=1, result={"isError": 1}), "its result is malformed"),
        (message(id=1, error="no"), "its error is malformed"),
        (message(id=1, error={"code": "x", "message": "no"}), "its error is malformed"),
        (message(id=1, error={"code": 1.5, "message": "no"}), "its error is malformed"),
        (message(id=1, error={"message": "no"}), "its error is malformed"),
        (message(id=1, error={"code": 1}), "its error is malformed"),
        (b'{"jsonrpc":"2.0","id":1,"result":%b%b}' % (b"[" * DEEP, b"]" * DEEP), "it is nested too deeply"),
    ],
)
def test_what_is_no_reply(data: bytes, reason: str) -> None:
    assert reason_for(data) == reason


def test_the_reason_quotes_nothing_of_the_vendor() -> None:
    assert "s3cret" not in reason_for(b"s3cret <html>") + reason_for(message(id={"s3cret": 1}))


MEMBERS = st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "result", "error"]), st.just("2.0") | JSON)
WRITTEN = (JSON | MEMBERS).map(lambda value: json.dumps(value, ensure_ascii=False).encode())


@settings(deadline=None)
@given(data=st.binary() | WRITTEN)
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    try:
        read = parse_message(data)
    except BadVendorReply:
        assert reason_for(data)
        return
    sent = json.loads(data)
    if isinstance(read, VendorResult):
        assert json.loads(read.raw_result) == sent["result"]
    elif isinstance(read, RpcError):
        assert json.loads(read.raw_error) == sent["error"]
    else:
        assert read.method == sent["method"]


@pytest.mark.parametrize(
    ("raw_result", "version"),
    [
        (raw(protocolVersion="2025-06-18", capabilities={}), "2025-06-18"),
        (raw(protocolVersion=5), None),
        (raw(protocolVersion=None), None),
        (raw(), None),
    ],
)
def test_the_version_of_a_handshake(raw_result: bytes, version: str | None) -> None:
    assert protocol_version(raw_result) == version


@pytest.mark.parametrize(
    ("raw_result", "page"),
    [
        (raw(tools=[{"name": "a"}, 5], nextCursor="c"), ToolsPage([{"name": "a"}, 5], "c")),
        (raw(tools=[], nextCursor=None), ToolsPage([], None)),
        (raw(tools=[], nextCursor=""), ToolsPage([], None)),
        (raw(tools=[], _meta={}), ToolsPage([], None)),
    ],
)
def test_a_page_of_tools(raw_result: bytes, page: ToolsPage) -> None:
    assert tools_page(raw_result) == page


@pytest.mark.parametrize(
    "raw_result", [raw(), raw(tools=None), raw(tools={}), raw(tools=[], nextCursor=5), b'{"tools":[1e999]}']
)
def test_a_page_that_is_none(raw_result: bytes) -> None:
    with pytest.raises(BadVendorReply, match="its list of tools is malformed"):
        tools_page(raw_result)


@pytest.mark.parametrize(
    ("raw_result", "said"),
    [
        (raw(content=[text("no such device")], isError=True), "no such device"),
        (raw(content=[text("one"), {"type": "image", "data": "aaaa"}, text(""), text("two")]), "one\ntwo"),
        (raw(content=[]), NO_ERROR_TEXT),
        (raw(content=[text("")]), NO_ERROR_TEXT),
        (raw(content=[{"type": "image", "text": "x"}]), NO_ERROR_TEXT),
        (raw(content=[text(5), "x", None, {"text": "x"}]), NO_ERROR_TEXT),
        (raw(content=None), NO_ERROR_TEXT),
        (raw(content="failed"), NO_ERROR_TEXT),
        (raw(structuredContent={"reason": "x"}), NO_ERROR_TEXT),
        (raw(), NO_ERROR_TEXT),
    ],
)
def test_what_a_failed_tool_says(raw_result: bytes, said: str) -> None:
    assert error_text(raw_result) == said


def test_what_a_failed_tool_says_is_cut_between_characters() -> None:
    assert error_text(raw(content=[text("x" * 4096)])) == "x" * 4096
    assert error_text(raw(content=[text("x" * 4095 + "é")])) == "x" * 4095
    assert error_text(raw(content=[text("y" * 3000), text("z" * 3000)])) == "y" * 3000 + "\n" + "z" * 1095


@pytest.mark.parametrize(
    ("raw_result", "texts"),
    [
        (raw(content=[text("one"), text("")]), ["one", ""]),
        (raw(content=[text("a") | {"annotations": {"audience": ["user"]}, "_meta": {}}]), ["a"]),
        (raw(content=[{"type": "image", "data": "aa"}]), ['{"type": "image", "data": "aa"}']),
        (raw(content=[text(5)]), ['{"type": "text", "text": 5}']),
        (raw(content=[{"type": "resource_link", "text": "x"}]), ['{"type": "resource_link", "text": "x"}']),
        ('{"content":[{"type":"x","é":1}]}'.encode(), ['{"type":"x","é":1}']),
        (raw(content=["plain", None, 1]), ['"plain"', "null", "1"]),
        (raw(content=[], structuredContent={"n": 1}), ['{"n": 1}']),
        (raw(structuredContent={"n": 1}), ['{"n": 1}']),
        (raw(content=[text("shown")], structuredContent={"n": 1}), ["shown"]),
        (raw(content=[], structuredContent=None), []),
        (raw(content=None), []),
        (raw(), []),
    ],
)
def test_results_on_the_command_line_are_text(raw_result: bytes, texts: list[str]) -> None:
    assert cli_content(raw_result) == [text(each) for each in texts]


@pytest.mark.parametrize("content", ["text", {"type": "text"}, 5, True])
def test_content_that_is_no_list_is_no_reply(content: object) -> None:
    with pytest.raises(BadVendorReply, match="its content is not a list"):
        cli_content(raw(content=content))


@pytest.mark.parametrize(
    ("part", "times", "reason"),
    [
        ('{"type":"text","text":"x"}', 10_000, None),
        ('{"type":"text","text":"x"}', 10_001, "too many content blocks"),
        ('{"type":"image","data":"x"}', 10_000, None),
        ("1", 1_000, None),
        ("1", 1_002, "not a list of blocks"),
        ("{}", 500_001, "too many parts"),
    ],
)
def test_a_result_made_of_very_many_parts_is_not_looked_into(part: str, times: int, reason: str | None) -> None:
    raw_result = f'{{"content":[{",".join([part] * times)}]}}'.encode()
    if reason is None:
        assert len(cli_content(raw_result)) == times
        return
    with pytest.raises(BadVendorReply, match=reason):
        cli_content(raw_result)
    assert error_text(raw_result) == NO_ERROR_TEXT


def test_an_odd_block_may_stand_beside_a_long_text() -> None:
    rows = json.dumps(list(range(5_000)))
    assert cli_content(raw(content=[text(rows), 5])) == [text(rows), text("5")]
    with pytest.raises(BadVendorReply):
        cli_content(b'{"content":[%b]}' % b",".join([b"1"] * 400_000))


def test_rows_within_a_text_are_no_parts() -> None:
    rows = json.dumps([{"id": number, "tags": [1, 2, 3]} for number in range(100_000)])
    assert cli_content(raw(content=[text(rows)])) == [text(rows)]


@settings(deadline=None)
@given(result=st.fixed_dictionaries({}, optional={"content": st.lists(JSON) | JSON, "structuredContent": JSON}))
def test_any_result_has_text_or_is_refused(result: dict[str, Any]) -> None:
    raw_result = json.dumps(result).encode()
    assert error_text(raw_result)
    try:
        blocks = cli_content(raw_result)
    except BadVendorReply:
        assert not isinstance(result["content"], list | None)
    else:
        assert all(block.keys() == {"type", "text"} and block["type"] == "text" for block in blocks)


def test_content_nested_too_deeply_is_refused_where_the_stack_is_short() -> None:
    deep = b'{"content":[{"type":%b%b}]}' % (b"[" * DEEP, b"]" * DEEP)
    assert error_text(deep) == NO_ERROR_TEXT
    with pytest.raises(BadVendorReply, match="nested too deeply"):
        cli_content(deep)


@example(depth=300)
@settings(deadline=None, max_examples=20)
@given(depth=st.integers(200, 2_000))
def test_depths_around_the_limit_of_the_stack_do_no_harm(depth: int) -> None:
    data = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"x":%b%b}]}}' % (b"[" * depth, b"]" * depth)
    try:
        read = parse_message(data)
    except BadVendorReply:
        assert depth > 300
        return
    assert isinstance(read, replies.VendorResult)

    def further_down(frames: int) -> str:
        return further_down(frames - 1) if frames else error_text(read.raw_result)

    assert further_down(100) == NO_ERROR_TEXT


def test_raw_tools_are_the_tools() -> None:
    raw = b'{"tools":[{"name":"a"},7,null,{"name":"b","inputSchema":{"type":"object"}}],"nextCursor":"2"}'
    page, whole = replies.raw_tools_page(raw), replies.tools_page(raw)
    assert list(replies.tools_of(page.tools)) == whole.tools
    assert page.next_cursor == whole.next_cursor == "2"
    assert replies.raw_tools_page(b'{"tools":[],"nextCursor":""}').next_cursor is None


@pytest.mark.parametrize("raw", [b"{}", b'{"tools":{}}', b'{"tools":[],"nextCursor":7}', b"[]"])
def test_what_is_no_raw_page(raw: bytes) -> None:
    with pytest.raises(replies.BadVendorReply):
        replies.raw_tools_page(raw)


def test_a_tool_that_cannot_be_read_is_reported_when_it_is_read() -> None:
    good, deep = msgspec.Raw(b'{"name":"a"}'), msgspec.Raw(b"[" * 100_000 + b"]" * 100_000)
    tools = replies.tools_of([good, deep])
    assert next(tools) == {"name": "a"}
    with pytest.raises(replies.BadVendorReply):
        next(tools)


def test_the_address_of_a_change() -> None:
    assert replies.updated_address(b'{"params":{"uri":"test://x","title":"more"}}') == "test://x"
    for raw in (b"", b"{}", b'{"params":{"uri":7}}', b'{"params":[]}', b"\xff", b"[" * 2_000):
        assert replies.updated_address(raw) is None
    assert replies.updated_address(b'{"params":{"uri":"%b"}}' % (b"x" * replies.MAX_UPDATE_BYTES)) is None


def test_the_subscriptions_that_a_vendor_acknowledges() -> None:
    raw = b'{"params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b","a:b","c:d"]}}}'
    assert replies.honoured_addresses(raw) == {"a:b", "c:d"}
    for bad in (b"", b"{}", b'{"params":{"notifications":{"resourceSubscriptions":[1]}}}', b'{"params":{}}'):
        assert replies.honoured_addresses(bad) == frozenset()
    many = b",".join(b'"%d"' % number for number in range(200_000))
    flood = b'{"params":{"notifications":{"resourceSubscriptions":[' + many + b"]}}}"
    assert len(flood) > replies.MAX_ACKNOWLEDGEMENT_BYTES
    assert replies.honoured_addresses(flood) == frozenset(), "parsing it would stop all other calls for a moment"

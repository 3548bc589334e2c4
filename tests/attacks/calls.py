"""Rows 9 to 20: calls, and the ways to say them."""

from __future__ import annotations

import gzip
import itertools
import json
from collections import Counter

from audit.models import RequestAuditEntry
from proxy.protocol.modern.headers import VERSION
from proxy.protocol.modern.requests import CLIENT_CAPABILITIES
from proxy.protocol.modern.revision import PROTOCOL_VERSION, SERVED
from proxy.protocol.versions import NEWEST_FIRST
from tests.attacks.refusals import refused
from tests.attacks.table import attack
from tests.attacks.world import CALL_ROW, JSON, LIST, World, message, result
from tests.factories.tenant import load_vendor, restrict_tools

NOWHERE = "http://127.0.0.1:9/mcp"
MIB = 1024 * 1024


def codes() -> Counter[tuple[str, str]]:
    """How often each way to end is in the log."""
    return Counter(RequestAuditEntry.objects.values_list("status", "error_code"))


@attack(9)
def a_scope_for_another_vendor(world: World) -> None:
    load_vendor(NOWHERE, slug="globex")
    token = world.token("mcp:globex")
    with world.watched(CALL_ROW):
        mcp, cli = world.call(token), world.cli(token)
        refused(mcp, 403, "insufficient_scope")
        refused(cli, 403)
        for answer in (mcp, cli):
            challenge = answer.headers["WWW-Authenticate"]
            assert 'error="insufficient_scope"' in challenge
            assert 'scope="mcp:fake mcp:globex"' in challenge
        refused(world.call(token, target="/v1/fake/mcp"), 403, "insufficient_scope")
        assert codes() == {("denied", "insufficient_scope"): 3}


@attack(10)
def a_vendor_without_credentials(world: World) -> None:
    load_vendor(NOWHERE, slug="globex")
    token = world.token()
    with world.watched(CALL_ROW):
        refused(world.cli(token, vendor="globex"), 403, "Globex is not connected.")
        on_mcp = result(world.call(token, "globex_list", target="/v1/globex/mcp"))
        assert on_mcp["isError"] is True
        assert "Globex is not connected." in on_mcp["content"][0]["text"]
        assert codes() == {("denied", "no_credentials"): 2}


@attack(10, ("nobody", "FAKE"))
def an_unknown_vendor(world: World, slug: str) -> None:
    token = world.token()
    with world.watched(CALL_ROW):
        refused(world.cli(token, vendor=slug), 403)
        assert codes() == {("denied", "unknown_vendor"): 1}
    with world.watched():
        refused(world.call(token, target=f"/v1/{slug}/mcp"), 404, "not_found")


@attack(
    10,
    (
        "../fake",
        "fake/../fake",
        "fake%2f..%2ffake",
        "%2e%2e/fake",
        "f%C3%A4ke",
        "",
        "fake//",
        "./fake",
        "fake.",
        "fake%20",
    ),
)
def a_path_that_leads_elsewhere(world: World, slug: str) -> None:
    token = world.token()
    with world.watched():
        refused(world.cli(token, vendor=slug), 404)
        refused(world.call(token, target=f"/v1/{slug}/mcp"), 404, "not_found")


@attack(11, {"another tool": ("fake_write",), "none at all": ()})
def a_tool_outside_the_allowlist(world: World, allowed: tuple[str, ...]) -> None:
    restrict_tools(world.tenant.organization, *allowed)
    token = world.token()
    listed = result(world.rpc(token, "tools/list"))["tools"]
    assert [tool["name"] for tool in listed] == list(allowed)
    schema = world.send("GET", "/v1/fake/cli/schema", bearer=token).json()
    assert len(schema["commands"]) == len(allowed)
    with world.watched(CALL_ROW):
        refused(world.cli(token), 403, "")
        answer = result(world.call(token))
        assert answer["isError"] is True
        assert "The role member isn't allowed to call" in answer["content"][0]["text"]
        assert codes() == {("denied", "tool_not_allowed"): 2}


LOOKALIKES = {
    "capitals": "FAKE_LIST",
    "one capital": "Fake_list",
    "space behind": "fake_list ",
    "space before": " fake_list",
    "Cyrillic": "f\u0430ke_list",
    "zero width": "fake_list\u200b",
    "full width": "fake\uff3flist",
    "dash": "fake-list",
}


@attack(11, LOOKALIKES)
def a_name_that_only_looks_like_an_allowed_one(world: World, name: str) -> None:
    restrict_tools(world.tenant.organization, "fake_list")
    token = world.token()
    assert result(world.call(token))["content"]  # the vendor's list is known from here on
    RequestAuditEntry.objects.all().delete()
    with world.watched(CALL_ROW):
        answer = world.call(token, name)
        assert answer.status_code == 200
        assert answer.json()["error"] == {"code": -32602, "message": f"Unknown tool: {name}"}
        refused(world.cli(token, name), 403)
        assert codes() == {("denied", "unknown_tool"): 2}


TWICE = {
    "tool twice": b'{"tool":"list","tool":"write"}',
    "args twice": b'{"tool":"list","args":{},"args":{"a":1}}',
    "deep inside": b'{"tool":"list","args":{"deep":{"a":1,"a":2}}}',
    "another case": b'{"Tool":"list"}',
    "a letter that looks alike": '{"too\u217c":"list"}'.encode(),
}


@attack(12, TWICE)
def a_member_said_twice_or_otherwise_to_the_command(world: World, body: bytes) -> None:
    token = world.token()
    with world.watched():
        refused(world.send("POST", "/v1/fake/cli", bearer=token, content=body), 400)


TWICE_IN_JSON_RPC = {
    "name": b'"params":{"name":"fake_list","name":"fake_write"}',
    "arguments": b'"params":{"name":"fake_list","arguments":{},"arguments":{"a":1}}',
    "method": b'"params":{"name":"fake_list"},"method":"tools/list"',
    "params": b'"params":{"name":"fake_list"},"params":{"name":"fake_write"}',
}


@attack(12, TWICE_IN_JSON_RPC)
def a_member_said_twice_in_json_rpc(world: World, rest: bytes) -> None:
    token = world.token()
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call",' + rest + b"}"
    with world.watched():
        found = refused(world.send("POST", "/v1/mcp", bearer=token, content=body), 400, -32700)
        assert found["id"] is None


@attack(12)
def members_that_look_alike_reach_no_vendor(world: World) -> None:
    """They are other members, and none of ours: the vendor sees only what was checked."""
    token = world.token()
    params = {**LIST, "Name": "fake_write", "param\u017f": 1, "task": {"ttl": 1}}
    with world.watched():
        refused(world.send("POST", "/v1/fake/cli", bearer=token, body={"Tool": "list"}), 400)
    answer = world.send("POST", "/v1/mcp", bearer=token, body={**message("tools/call", params), "Method": "tools/list"})
    assert "isError" not in result(answer)
    sent = [each for each in world.vendor.bodies if each.get("method") == "tools/call"]
    assert [each["params"] for each in sent] == [LIST]
    assert set(sent[0]) == {"jsonrpc", "id", "method", "params"}


@attack(
    13,
    {
        "no tool": b"{}",
        "a number": b'{"tool":123}',
        "null": b'{"tool":null}',
        "empty": b'{"tool":""}',
        "args as a list": b'{"tool":"list","args":[]}',
        "args as null": b'{"tool":"list","args":null}',
        "not JSON": b"tool=list",
        "half": b'{"tool":"list"',
        "a list": b'["list"]',
        "nothing": b"",
    },
)
def a_command_that_is_none(world: World, body: bytes) -> None:
    token = world.token()
    with world.watched():
        refused(world.send("POST", "/v1/fake/cli", bearer=token, content=body, headers=_kind(body)), 400)


def _kind(body: bytes) -> list[tuple[str, str]]:
    """A client says what it sends also when that is nothing."""
    return [] if body else [("content-type", JSON)]


BROKEN = {
    "10,000 deep": b"[" * 10_000 + b"]" * 10_000,
    "a million digits": b"9" * 1_000_000,
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
    "lone surrogate": b'"\\ud800"',
    "no UTF-8": b'"\xff"',
    "NUL": b'"\x00"',
    "NUL escaped": rb'"a\u0000b"',
    "NUL in a name": rb'{"a\u0000":1}',
}


@attack(14, BROKEN)
def a_value_that_readers_read_differently(world: World, value: bytes) -> None:
    token = world.token()
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fake_list","arguments":{"a":' + value
    with world.watched():
        refused(world.send("POST", "/v1/mcp", bearer=token, content=call + b"}}}"), 400, -32700)
        body = b'{"tool":"list","args":{"a":' + value + b"}}"
        refused(world.send("POST", "/v1/fake/cli", bearer=token, content=body), 400)
        of_api = world.send("PATCH", "/api/profile", who="member", content=b'{"firstName":' + value + b"}")
        fits = len(value) < 256 * 1024
        refused(of_api, 400 if fits else 413, "invalid_json" if fits else "body_too_large")


@attack(15)
def a_body_of_one_byte_too_many(world: World) -> None:
    token = world.token()
    body = json.dumps(message("ping")).encode().ljust(4 * MIB)
    assert result(world.send("POST", "/v1/mcp", bearer=token, content=body)) == {}
    with world.watched():
        refused(world.send("POST", "/v1/mcp", bearer=token, content=body + b" "), 413, "body_too_large")
        refused(world.send("POST", "/v1/fake/cli", bearer=token, content=body + b" "), 413)


@attack(15)
def a_request_that_is_a_gzip_bomb(world: World) -> None:
    token, bomb = world.token(), gzip.compress(b" " * 64 * MIB)
    packed = [("content-encoding", "gzip")]
    with world.watched():
        refused(world.send("POST", "/v1/mcp", bearer=token, content=bomb, headers=packed), 415, "unsupported_encoding")
        refused(world.send("POST", "/v1/fake/cli", bearer=token, content=bomb, headers=packed), 415)
        refused(
            world.send("POST", "/api/orgs", who="member", content=bomb, headers=packed), 415, "unsupported_media_type"
        )


@attack(15)
def a_body_without_an_end(world: World) -> None:
    token = world.token()
    with world.watched():
        endless = itertools.repeat(b" " * 65_536)
        refused(world.send("POST", "/v1/mcp", bearer=token, chunks=endless), 413, "body_too_large")
        refused(world.send("POST", "/v1/fake/cli", bearer=token, chunks=itertools.repeat(b" " * 65_536)), 413)
        endless = itertools.repeat(b" " * 65_536)
        refused(world.send("POST", "/api/orgs", who="member", chunks=endless), 413, "body_too_large")


@attack(16, {"21": 21, "10,000": 10_000})
def a_batch_too_long(world: World, count: int) -> None:
    token = world.token()
    with world.watched():
        body = [message("tools/call", LIST, number) for number in range(count)]
        refused(world.send("POST", "/v1/mcp", bearer=token, body=body), 400, -32600)


@attack(17, ("1999-01-01", "2025-11-26", "latest", "2025-06-18, 2025-03-26"))
def a_protocol_version_of_nobody(world: World, version: str) -> None:
    token = world.token()
    with world.watched():
        for method, params in (("tools/list", None), ("tools/call", LIST)):
            answer = world.rpc(token, method, params, headers=[("mcp-protocol-version", version)])
            data = refused(answer, 400, -32602)["error"]["data"]
            assert data == {"supported": list(NEWEST_FIRST), "requested": version}


@attack(18, ("https://evil.example", "null", "http://testserver.evil.example", "http://["))
def a_foreign_origin(world: World, origin: str) -> None:
    token = world.token()
    with world.watched():
        answer = world.call(token, headers=[("origin", origin)])
        refused(answer, 403, "forbidden_origin")
        assert not [name for name in answer.headers if name.startswith("access-control")]
        refused(world.cli(token, headers=[("origin", origin)]), 403)


@attack(18, ("evil", "evil.example", "a/#@b", "testserver:80@evil", "testserver.evil", ""))
def a_foreign_host(world: World, host: str) -> None:
    token = world.token()
    with world.watched():
        refused(world.call(token, host=host), 400, "invalid_request")
        refused(world.cli(token, host=host), 400)
        refused(world.send("GET", "/api/profile", who="member", host=host), 400, "bad_request")


LIES = [
    *((f"x-forwarded-{name}", "203.0.113.7") for name in ("for", "host", "uri", "user", "proto", "prefix")),
    *((f"x_forwarded_{name}", "203.0.113.8") for name in ("for", "user")),
    ("x-original-url", "/v1/nobody/cli"),
    ("x-real-ip", "203.0.113.9"),
    ("forwarded", "for=203.0.113.10"),
    ("x-api-key", "another"),
    ("mcp-session-id", "somebody-elses"),
    ("connection", "authorization"),
]


@attack(19)
def headers_that_would_say_who_it_is(world: World) -> None:
    """They count for nothing: neither for the address in the log, nor for the organization, nor for the host."""
    token, lies = world.token(), [*LIES, ("x-org-id", str(world.cast.other_org.id))]
    with world.watched():
        refused(world.call(None, headers=lies), 401, "unauthorized")
        refused(world.send("GET", "/api/profile", headers=lies), 401, "unauthenticated")
    assert world.cli(token, headers=lies).status_code == 200
    row = RequestAuditEntry.objects.get()
    assert (row.org_id, row.ip_address) == (world.cast.org.id, world.address)
    assert world.vendor.headers["X-Api-Key"] == "right-key"
    assert not any("203.0.113" in value for value in world.vendor.headers.values())


@attack(
    19, {"method": ("mcp-method", "tools/list"), "tool": ("mcp-name", "fake_list"), "version": (VERSION, "2025-11-25")}
)
def headers_that_say_another_call_than_the_body(world: World, lie: tuple[str, str]) -> None:
    token = world.token()
    meta = {PROTOCOL_VERSION: SERVED[0], CLIENT_CAPABILITIES: {}}
    said = {VERSION: SERVED[0], "mcp-method": "tools/call", "mcp-name": "fake_write"} | dict([lie])
    with world.watched():
        params = {"name": "fake_write", "arguments": {}, "_meta": meta}
        for target in ("/v1/mcp", "/v1/fake/mcp"):
            answer = world.rpc(token, "tools/call", params, target=target, headers=[*said.items()])
            refused(answer, 400, -32020)


@attack(19, ("the same", "of somebody else", "nonsense"))
def two_authorizations(world: World, second: str) -> None:
    token = world.token()
    value = {"the same": token, "of somebody else": world.other.agent_key, "nonsense": "x"}[second]
    with world.watched():
        twice = [("authorization", f"Bearer {value}")]
        refused(world.call(token, headers=twice), 401, "invalid_token")
        refused(world.cli(token, headers=twice), 401)


@attack(20)
def two_hundred_callers_with_one_id(world: World) -> None:
    token = world.token()
    world.call(token)
    asks = [
        world.request(
            "POST",
            "/v1/mcp",
            bearer=token,
            body=message("tools/call", {"name": "fake_list", "arguments": {"nonce": f"n{number}"}}),
        )
        for number in range(200)
    ]
    answers = world.wire.at_once(*asks)
    assert [result(each)["structuredContent"] for each in answers] == [{"nonce": f"n{n}"} for n in range(200)]
    with world.watched():
        assert codes() == {("success", ""): 201}

"""Pure: results of the modern revision: all have a `resultType`, those that could be kept say for how long.

Spec: MCP 2026-07-28, schema, Result · server/utilities/caching · docs/decisions/0102
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from gateway.lib.sentences import plain
from proxy.protocol import reserved_meta
from proxy.protocol.modern.revision import SERVED

SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
# Stale at once, for one caller: a tool that was withdrawn must not linger in a client's copy.
NEVER_KEPT: Final = {"ttlMs": 0, "cacheScope": "private"}
_COMPLETE: Final = {"resultType": "complete"}
_NULL: Final = b"null"

_opening = re.compile(rb"\{[ \t\r\n]*").match

_encode = msgspec.json.Encoder(enc_hook=plain).encode


class _Head(msgspec.Struct, rename="camel"):
    """The members of a vendor's result that the gateway writes itself."""

    content: Raw = Raw()
    result_type: Raw = Raw()
    meta: Raw = msgspec.field(name="_meta", default=Raw())


_heads = msgspec.json.Decoder(_Head)
_objects = msgspec.json.Decoder(dict[str, Raw])


def of_tool(raw_result: bytes, server: Mapping[str, Any]) -> tuple[bytes, bytes | memoryview]:
    """A vendor's result of `tools/call`, a JSON object, with what the revision asks for. Other members stay bytes.

    In two parts, so that a large result is copied once, into the message. A vendor of an earlier version has no say in
    `resultType`.
    """
    head = _heads.decode(raw_result)
    members: dict[str, object] = {**_COMPLETE, "_meta": {SERVER_INFO: server}}
    has_content = bool(bytes(head.content)) and bytes(head.content) != _NULL
    if not has_content:
        members["content"] = []
    if not (bytes(head.content) == _NULL or bytes(head.result_type) or bytes(head.meta)):
        return _spliced(_encode(members), raw_result)
    own = _objects.decode(raw_result)
    meta = reserved_meta.members_of(own.pop("_meta", None)) or {}
    own.pop("resultType", None)
    return _encode({**own, **members, "_meta": {**meta, SERVER_INFO: server}}), b""


def of_item(raw_result: bytes, server: Mapping[str, Any], *, may_be_kept: bool) -> tuple[bytes, bytes | memoryview]:
    """As `of_tool`, of a request for a resource or a prompt. `may_be_kept`: clients keep such results, so it says for
    how long."""
    head = _heads.decode(raw_result)
    members: dict[str, object] = {**_COMPLETE, **(NEVER_KEPT if may_be_kept else {})}
    members["_meta"] = {SERVER_INFO: server}
    own = _objects.decode(raw_result)
    if not (bytes(head.result_type) or bytes(head.meta)) and own.keys().isdisjoint(members):
        return _spliced(_encode(members), raw_result)
    meta = reserved_meta.members_of(own.get("_meta")) or {}
    return _encode({**own, **members, "_meta": {**meta, SERVER_INFO: server}}), b""


def before_list(server: Mapping[str, Any], meta: Mapping[str, Any]) -> bytes:
    """The beginning of a result, up to the comma before the member that lists."""
    members = {**_COMPLETE, **NEVER_KEPT, "_meta": {**meta, SERVER_INFO: server}}
    return _encode(members)[:-1] + b","


def around_list(server: Mapping[str, Any], meta: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """The bytes before and after the definitions of `tools/list`."""
    return before_list(server, meta) + b'"tools":[', b"]}"


def discovered(server: Mapping[str, Any], instructions: str, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to `server/discover`."""
    return {
        **_COMPLETE,
        **NEVER_KEPT,
        "_meta": {SERVER_INFO: server},
        "supportedVersions": SERVED,
        "capabilities": capabilities,
        "instructions": instructions,
    }


def complete(members: Mapping[str, Any], server: Mapping[str, Any]) -> dict[str, Any]:
    """A result of the gateway's own."""
    return {**_COMPLETE, **members, "_meta": {**members.get("_meta", {}), SERVER_INFO: server}}


def input_required(members: Mapping[str, Any], server: Mapping[str, Any]) -> dict[str, Any]:
    """An answer after which the client asks its person, and repeats the call."""
    return {"resultType": "input_required", **members, "_meta": {SERVER_INFO: server}}


def _spliced(encoded: bytes, raw_object: bytes) -> tuple[bytes, memoryview]:
    """The members of `encoded` and then those of `raw_object`, as they are."""
    brace = _opening(raw_object)
    begins = brace.end() if brace else 1
    separator = b"" if raw_object.startswith(b"}", begins) else b","
    return encoded[:-1] + separator, memoryview(raw_object)[begins:]

"""Pure: members of `_meta` that the MCP specification keeps for itself. None of them passes the gateway.

They describe one hop: the revision that a client speaks, or the software of a server. A caller's would be taken by a
vendor for the gateway's own, and a vendor's by a caller. The gateway writes those that it means itself.

Spec: MCP 2025-06-18 and 2025-11-25, basic/index, `_meta`
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

_RESERVED_LABELS: Final = frozenset({"modelcontextprotocol", "mcp"})
_MEMBER: Final = "_meta"
_MENTIONED: Final = b'"_meta"'
_ESCAPED: Final = rb"\u00"  # begins the escape of every letter of the name: "\u005fmeta" is the same name
_V = TypeVar("_V")

_objects = msgspec.json.Decoder(dict[str, Raw])
_lists = msgspec.json.Decoder(list[Raw])
_encode = msgspec.json.Encoder().encode


def is_reserved(key: str) -> bool:
    """True if a key has a prefix that is reserved: one of its first two labels, of two or more, is MCP's name.

    `io.modelcontextprotocol/x` and `mcp.dev/x` are reserved; `com.example.mcp/x` is a vendor's own.
    """
    prefix, slash, _ = key.partition("/")
    labels = prefix.split(".")
    return bool(slash) and len(labels) > 1 and not _RESERVED_LABELS.isdisjoint(labels[:2])


def without_reserved(meta: Mapping[str, _V]) -> dict[str, _V]:
    """Return the members that may pass."""
    return {key: value for key, value in meta.items() if not is_reserved(key)}


def mentions_meta(raw: bytes) -> bool:
    """False if a message cannot hold a `_meta`, in whichever way its letters are written."""
    return _MENTIONED in raw or _ESCAPED in raw


def cleaned_result(raw_result: bytes) -> bytes:
    """Return a result without reserved members in its `_meta` and in those of its content blocks.

    The bytes that came are returned where there is nothing to remove; else every other value keeps its bytes.
    """
    members = _members(raw_result)
    if members is None:
        return raw_result
    content = members.get("content")
    blocks = _cleaned_blocks(content) if content is not None and mentions_meta(bytes(content)) else None
    if blocks is not None:
        members["content"] = Raw(blocks)
    return _encode(members) if _clean(members) or blocks is not None else raw_result


def cleaned_notification(raw: bytes) -> bytes:
    """Return a notification without reserved members in the `_meta` of its params."""
    members = _members(raw)
    params = None if members is None else _members(members.get("params"))
    if members is None or params is None or not _clean(params):
        return raw
    members["params"] = Raw(_encode(params))
    return _encode(members)


def _cleaned_blocks(content: bytes | Raw) -> bytes | None:
    """The content blocks without reserved members; None if they have none."""
    try:
        blocks: list[Any] = _lists.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return None
    changed = False
    for position, raw in enumerate(blocks):
        if not mentions_meta(bytes(raw)):
            continue
        block = _members(raw)
        if block is None:
            continue
        has_reserved = _clean(block)
        resource = _members(block.get("resource"))
        if resource is not None and _clean(resource):
            block["resource"], has_reserved = Raw(_encode(resource)), True
        if has_reserved:
            blocks[position], changed = Raw(_encode(block)), True
    return _encode(blocks) if changed else None


def _clean(members: dict[str, Raw]) -> bool:
    """Take reserved members out of the `_meta` among these; True if there were any. An empty `_meta` goes too."""
    meta = _members(members.get(_MEMBER))
    if meta is None:
        return False
    kept = without_reserved(meta)
    if len(kept) == len(meta):
        return False
    if kept:
        members[_MEMBER] = Raw(_encode(kept))
    else:
        del members[_MEMBER]
    return True


def _members(raw: bytes | Raw | None) -> dict[str, Raw] | None:
    """The members of a JSON object; None for anything else."""
    if raw is None:
        return None
    try:
        return _objects.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None

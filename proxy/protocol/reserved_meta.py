"""Pure: removes the members of `_meta` that MCP reserves: they describe one hop only, so none may pass the gateway.

Spec: MCP 2025-06-18 and 2025-11-25, basic/index, `_meta`
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

_RESERVED_LABELS: Final = frozenset({"modelcontextprotocol", "mcp"})
_MEMBER: Final = "_meta"
_MENTIONED: Final = b'"_meta"'
_ESCAPED: Final = rb"\u00"  # start of an escaped ASCII letter: "\u005fmeta" is the same name
_V = TypeVar("_V")

_objects = msgspec.json.Decoder(dict[str, Raw])
_lists = msgspec.json.Decoder(list[Raw])
_encode = msgspec.json.Encoder().encode


def is_reserved(key: str) -> bool:
    """`io.modelcontextprotocol/x` and `mcp.dev/x` are reserved, `com.example.mcp/x` is not."""
    prefix, slash, _ = key.partition("/")
    labels = prefix.split(".")
    return bool(slash) and len(labels) > 1 and not _RESERVED_LABELS.isdisjoint(labels[:2])


def without_reserved(meta: Mapping[str, _V]) -> dict[str, _V]:
    return {key: value for key, value in meta.items() if not is_reserved(key)}


def mentions_meta(raw: bytes) -> bool:
    """False if `_meta` cannot occur, escaped or not."""
    return _MENTIONED in raw or _ESCAPED in raw


def cleaned_result(raw_result: bytes) -> bytes:
    """Without reserved members, in content blocks too; the same object if there are none."""
    members = members_of(raw_result)
    if members is None:
        return raw_result
    content = members.get("content")
    blocks = _cleaned_blocks(content) if content is not None and mentions_meta(bytes(content)) else None
    if blocks is not None:
        members["content"] = Raw(blocks)
    # All other values keep their bytes.
    return _encode(members) if _clean(members) or blocks is not None else raw_result


def cleaned_notification(raw: bytes) -> bytes:
    members = members_of(raw)
    params = None if members is None else members_of(members.get("params"))
    if members is None or params is None or not _clean(params):
        return raw
    members["params"] = Raw(_encode(params))
    return _encode(members)


def _cleaned_blocks(content: bytes | Raw) -> bytes | None:
    """None if nothing was removed."""
    try:
        blocks: list[Any] = _lists.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return None
    changed = False
    for position, raw in enumerate(blocks):
        if not mentions_meta(bytes(raw)):
            continue
        block = members_of(raw)
        if block is None:
            continue
        has_reserved = _clean(block)
        resource = members_of(block.get("resource"))
        if resource is not None and _clean(resource):
            block["resource"], has_reserved = Raw(_encode(resource)), True
        if has_reserved:
            blocks[position], changed = Raw(_encode(block)), True
    return _encode(blocks) if changed else None


def _clean(members: dict[str, Raw]) -> bool:
    """Removes reserved members from the `_meta` in `members`; True if there were any."""
    meta = members_of(members.get(_MEMBER))
    if meta is None:
        return False
    kept = without_reserved(meta)
    if len(kept) == len(meta):
        return False
    if kept:
        members[_MEMBER] = Raw(_encode(kept))
    else:
        del members[_MEMBER]  # no empty `_meta`
    return True


def members_of(raw: bytes | Raw | None) -> dict[str, Raw] | None:
    """None for anything but a JSON object."""
    if raw is None:
        return None
    try:
        return _objects.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None

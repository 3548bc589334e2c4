"""Pure: addresses inside results, written as callers of the unified endpoint use them. All else keeps its bytes.

contents[].uri of resources/read
content[].uri of a resource_link, content[].resource.uri of an embedded resource: tools/call
messages[].content, one block: prompts/get
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from proxy.protocol import item_addresses
from proxy.protocol.json_schema import as_dict
from proxy.protocol.reserved_meta import members_of

MAX_BLOCKS: Final = 10_000
_MENTIONED: Final = b'"resource'  # the start of both types of blocks
_ESCAPED: Final = (rb"\u006", rb"\u007")  # starts of escaped letters: "\u0072esource" is the same type
_UI: Final = "ui"
_UI_MEMBER: Final = "resourceUri"
_UI_EARLIER: Final = "ui/resourceUri"  # one member in place of an object

_lists = msgspec.json.Decoder(list[Raw])
_texts = msgspec.json.Decoder(str)
_encode = msgspec.json.Encoder().encode
_Change = Callable[[dict[str, Raw]], bool]  # of an object's members; whether there was one


def of_tool(raw_result: bytes, slug: str) -> bytes:
    """A result of tools/call; the same object if no address stands in it."""
    if not mentions_address(raw_result):
        return raw_result
    return _with_list(raw_result, "content", lambda block: _change_block(block, slug))


def mentions_address(raw_result: bytes) -> bool:
    """Whether `of_tool` would look at the result."""
    return _MENTIONED in raw_result or any(escaped in raw_result for escaped in _ESCAPED)


def of_prompt(raw_result: bytes, slug: str) -> bytes:
    """A result of prompts/get."""
    if not mentions_address(raw_result):
        return raw_result
    return _with_list(raw_result, "messages", lambda message: _within(message, "content", slug))


def of_read(raw_result: bytes, slug: str) -> bytes:
    """A result of resources/read."""
    return _with_list(raw_result, "contents", lambda each: _change_address(each, "uri", slug))


def with_exposed_app(definition: Mapping[str, Any], slug: str) -> Mapping[str, Any]:
    """A tool's definition whose `_meta` names its app by the address at the unified endpoint."""
    meta = definition.get("_meta")
    if not isinstance(meta, dict):
        return definition
    changed: dict[str, Any] = {}
    ui, earlier = meta.get(_UI), meta.get(_UI_EARLIER)
    if isinstance(ui, dict) and isinstance(ui.get(_UI_MEMBER), str):
        changed[_UI] = {**ui, _UI_MEMBER: item_addresses.exposed(slug, ui[_UI_MEMBER])}
    if isinstance(earlier, str):
        changed[_UI_EARLIER] = item_addresses.exposed(slug, earlier)
    return {**definition, "_meta": {**meta, **changed}} if changed else definition


def apps_of(definition: Mapping[str, Any]) -> set[str]:
    """The vendor's own addresses of a tool's app. Another scheme is none: a tool must not open other resources."""
    meta = as_dict(definition.get("_meta"))
    named = (as_dict(meta.get(_UI)).get(_UI_MEMBER), meta.get(_UI_EARLIER))
    return {each for each in named if isinstance(each, str) and item_addresses.is_app(each)}


def _with_list(raw_result: bytes, member: str, change: _Change) -> bytes:
    """The result with the changed objects of the list `member`; unchanged, if it is no list of objects."""
    members = members_of(raw_result)
    listed = None if members is None else _list_in(members.get(member))
    if members is None or listed is None or len(listed) > MAX_BLOCKS:
        return raw_result
    has_changed = False
    for position, raw in enumerate(listed):
        each = members_of(raw)
        if each is not None and change(each):
            listed[position], has_changed = Raw(_encode(each)), True
    if not has_changed:
        return raw_result
    members[member] = Raw(_encode(listed))
    return _encode(members)


def _within(members: dict[str, Raw], member: str, slug: str) -> bool:
    """Changes the block that is a member."""
    block = members_of(members.get(member))
    if block is None or not _change_block(block, slug):
        return False
    members[member] = Raw(_encode(block))
    return True


def _change_block(block: dict[str, Raw], slug: str) -> bool:
    kind = _text_in(block.get("type"))
    if kind == "resource_link":
        return _change_address(block, "uri", slug)
    if kind != "resource":
        return False
    resource = members_of(block.get("resource"))
    if resource is None or not _change_address(resource, "uri", slug):
        return False
    block["resource"] = Raw(_encode(resource))
    return True


def _change_address(members: dict[str, Raw], member: str, slug: str) -> bool:
    uri = _text_in(members.get(member))
    if uri is None:
        return False
    members[member] = Raw(_encode(item_addresses.exposed(slug, uri)))
    return True


def _list_in(raw: Raw | None) -> list[Raw] | None:
    try:
        return None if raw is None else _lists.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def _text_in(raw: Raw | None) -> str | None:
    try:
        return None if raw is None else _texts.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None

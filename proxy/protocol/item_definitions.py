"""Pure: a vendor's list of resources, templates or prompts, made safe for callers with the fewest possible changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from gateway.catalog.vendor import is_tool_name
from proxy.protocol import item_addresses, replies
from proxy.protocol.item_kinds import ItemKind
from proxy.protocol.json_schema import as_dict, is_deeper_than, without
from proxy.protocol.replies import BadVendorReply
from proxy.protocol.reserved_meta import without_reserved
from proxy.protocol.tool_definitions import MAX_DEPTH, Definition, without_hidden
from proxy.protocol.tool_names import ExposedTools

MAX_ITEMS: Final = {ItemKind.RESOURCE: 2_000, ItemKind.TEMPLATE: 500, ItemKind.PROMPT: 2_000}  # of one vendor

_pages = msgspec.json.Decoder(dict[str, Raw])
_raws = msgspec.json.Decoder(list[Raw])
_cursors = msgspec.json.Decoder(str | None)
_encode = msgspec.json.Encoder().encode


class ItemName(msgspec.Struct, frozen=True):
    """`own`: the vendor's name or address; `exposed`: at the unified endpoint."""

    own: str
    exposed: str


class AcceptedItems(msgspec.Struct, frozen=True):
    """In an order that stays the same. Bodies are the definitions, joined by commas."""

    names: tuple[ItemName, ...]
    own_body: bytes
    exposed_body: bytes
    left_out: int  # entries


def page_of(kind: ItemKind, raw_result: bytes) -> tuple[list[Raw], str | None]:
    """The unparsed entries of a page and the next cursor. Raises: BadVendorReply."""
    try:
        page = _pages.decode(raw_result)
        listed = _raws.decode(page[kind.member])
        return listed, _cursors.decode(page.get("nextCursor", Raw(b"null"))) or None
    except (KeyError, msgspec.DecodeError, RecursionError):
        raise BadVendorReply(f"its list of {kind.member} is malformed") from None


def accept(kind: ItemKind, slug: str, prefix: str, listed: Iterable[Raw]) -> AcceptedItems:
    """Raises: BadVendorReply."""
    found: dict[str, Definition] = {}
    left_out = 0
    for item in replies.tools_of(listed):
        definition = _accepted(kind, item) if len(found) < MAX_ITEMS[kind] else None
        if definition is None or definition[kind.named_by] in found:
            left_out += 1
        else:
            found[definition[kind.named_by]] = definition
    names = _names(kind, slug, prefix, found)
    own = [_encode(found[name.own]) for name in names]
    exposed = [_encode({**found[name.own], kind.named_by: name.exposed}) for name in names]
    return AcceptedItems(tuple(names), b",".join(own), b",".join(exposed), left_out)


def entries_of(body: bytes) -> list[Raw]:
    """The definitions of a body, in the order of its names."""
    return _raws.decode(b"[%b]" % body)


def _names(kind: ItemKind, slug: str, prefix: str, found: Iterable[str]) -> list[ItemName]:
    if kind is ItemKind.PROMPT:  # named as tools are, so that no two have one name. docs/decisions/0104
        return [ItemName(each.vendor_name, each.exposed_name) for each in ExposedTools(prefix, found).tools]
    return [ItemName(own, item_addresses.exposed(slug, own)) for own in found]


def _accepted(kind: ItemKind, item: object) -> Definition | None:
    """The definition for callers; None if it is left out."""
    if not isinstance(item, dict) or is_deeper_than(item, MAX_DEPTH):
        return None
    named = item.get(kind.named_by)
    is_named = is_tool_name(named) if kind is ItemKind.PROMPT and isinstance(named, str) else _is_address(named)
    if not is_named or not isinstance(item.get("name"), str):
        return None
    # One optional member of a wrong type makes strict clients drop the whole list.
    wrong = [name for name, fits in _OPTIONAL_MEMBERS.items() if name in item and not fits(item[name])]
    definition = without_hidden(without(item, wrong) if wrong else item, kept=kind.named_by)
    meta = as_dict(definition.get("_meta"))
    kept = without_reserved(meta)
    if len(kept) == len(meta):
        return definition
    return {**definition, "_meta": kept} if kept else without(definition, ("_meta",))


def _is_address(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= item_addresses.MAX_CHARACTERS and value.isprintable()


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_size(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_objects_with(member: str, value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) and _is_text(each.get(member)) for each in value)


_OPTIONAL_MEMBERS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "title": _is_text,
    "description": _is_text,
    "mimeType": _is_text,
    "size": _is_size,
    "annotations": _is_object,
    "icons": lambda value: _are_objects_with("src", value),
    "arguments": lambda value: _are_objects_with("name", value),
    "_meta": _is_object,
}

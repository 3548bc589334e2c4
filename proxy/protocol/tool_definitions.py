"""Pure: makes a vendor's tool definitions safe for callers with the fewest possible changes."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from gateway.catalog.vendor import TOOL_NAME_MAX_CHARACTERS, is_tool_name
from gateway.lib.hidden_text import replace_hidden
from proxy.protocol.json_schema import as_dict, cut, flatten_root, is_deeper_than, without
from proxy.protocol.reserved_meta import without_reserved

Definition: TypeAlias = dict[str, Any]

MAX_TOOLS: Final = 2_000  # of one vendor
MAX_DEPTH: Final = 64  # of nested objects and arrays
_ECHOED_CHARACTERS: Final = 80
_QUOTED_CHARACTERS: Final = 120  # of those, with unprintable ones escaped
_KEPT_ICON_CHARACTERS: Final = 512  # of an address; a longer one, an embedded picture, is kept as its checksum
_ESCAPED: Final = (b"\\u00", b"\\b", b"\\f", b"\x7f")  # JSON escapes of hidden ASCII characters
_canonical = msgspec.json.Encoder(order="sorted").encode


class AcceptedDefinitions(msgspec.Struct, frozen=True):
    """Definitions in the vendor's order, names unique. `problems` quote the vendor: text, never markup."""

    definitions: list[Definition]
    problems: list[str]
    for_callers: list[Definition]  # without hidden characters


def accept_definitions(listed: Iterable[object]) -> AcceptedDefinitions:
    """The tools that callers can call and strict clients can parse. Spec: protocol.md A.5, A.7 · D111"""
    definitions: dict[str, Definition] = {}
    problems: list[str] = []
    for number, item in enumerate(listed, start=1):
        if len(definitions) == MAX_TOOLS:
            problems.append(f"Tool {number} and those after it are left out: {MAX_TOOLS} tools are enough.")
            break
        fault = _fault_in(item, definitions)
        if fault or not isinstance(item, dict):
            problems.append(f"{_called(number, item)} is left out: {fault}.")
        # Task-only tools are dropped silently: tasks are not offered.
        elif not runs_only_as_task(item):
            # One optional member of a wrong type makes strict clients drop the tools of every vendor.
            wrong = [name for name, fits in _OPTIONAL_MEMBERS.items() if name in item and not fits(item[name])]
            problems += [f"{_called(number, item)} has a wrong {name}." for name in wrong if item[name] is not None]
            definitions[item["name"]] = without(item, wrong) if wrong else item
    for_callers = [_shown_to_callers(each, problems) for each in definitions.values()]
    return AcceptedDefinitions(list(definitions.values()), problems, for_callers)


def _shown_to_callers(definition: Definition, problems: list[str]) -> Definition:
    found = [0]
    cleaned = without_hidden(definition, found=found)
    if found[0]:
        called = quoted(definition["name"])
        characters = "character" if found[0] == 1 else "characters"
        problems.append(f"Tool {called} has {found[0]} hidden {characters}, which callers do not get.")
    return cleaned


def without_hidden(definition: Definition, *, kept: str = "name", found: list[int] | None = None) -> Definition:
    """The same object if nothing is hidden. The member `kept` stays: calls use it. `found` counts the characters."""
    encoded = msgspec.json.encode(definition)
    if encoded.isascii() and not any(escaped in encoded for escaped in _ESCAPED):
        return definition
    found = [0] if found is None else found
    cleaned: Definition = {**_cleaned(definition, found), kept: definition[kept]}
    return cleaned if found[0] else definition


def texts_without_hidden(value: Any) -> Any:
    """Of decoded JSON that is no definition. Raises: RecursionError."""
    return _cleaned(value, [0])


def _cleaned(value: Any, found: list[int]) -> Any:
    """Removes hidden characters from all texts and member names, and counts them in `found`. At most MAX_DEPTH deep."""
    if isinstance(value, str):
        lines = [replace_hidden(line, lambda _: "") for line in value.split("\r")]
        found[0] += sum(hidden for _, hidden in lines)
        return "\r".join(text for text, _ in lines)
    if isinstance(value, dict):
        return {_cleaned(name, found): _cleaned(each, found) for name, each in value.items()}
    if isinstance(value, list):
        return [_cleaned(each, found) for each in value]
    return value


def runs_only_as_task(definition: Mapping[str, Any]) -> bool:
    """Spec: protocol.md A.5"""
    return as_dict(definition.get("execution")).get("taskSupport") == "required"


def exposed_definition(definition: Definition, name: str) -> Definition:
    """The definition under `name`, with a description and a plain `inputSchema`. Spec: D111 · protocol.md A.5, A.7"""
    schema, choice = flatten_root(as_dict(definition.get("inputSchema")))
    text = description_of(definition)
    return {
        **_passed_on(definition),
        "name": name,
        "description": f"{text}\n\n{choice}" if choice else text,  # a choice lost at the root is described
        "inputSchema": schema,
    }


def _passed_on(definition: Definition) -> Definition:
    passed = without(definition, ("execution",))  # between vendor and gateway only
    meta = as_dict(passed.get("_meta"))
    kept = without_reserved(meta)
    if len(kept) == len(meta):
        return passed
    return {**passed, "_meta": kept} if kept else without(passed, ("_meta",))


def approvable_json(definition: Definition) -> bytes:
    """All that callers see, as canonical JSON: what an allowlist's owner agrees to. Spec: D78"""
    shown = _passed_on(definition)
    if isinstance(shown.get("icons"), list):
        shown = {**shown, "icons": [_approvable_icon(icon) for icon in shown["icons"]]}
    return _canonical(shown)


def _approvable_icon(icon: Any) -> Any:
    source = icon.get("src") if isinstance(icon, dict) else None
    if not isinstance(source, str) or len(source) <= _KEPT_ICON_CHARACTERS:
        return icon
    digest = hashlib.sha256(source.encode()).hexdigest()
    return {**icon, "src": f"{source[:_ECHOED_CHARACTERS]}… SHA-256 {digest}"}


def description_of(definition: Mapping[str, Any]) -> str:
    """The description; without one the title; without both the name."""
    return _first_text(definition.get("description")) or title_of(definition) or str(definition["name"])


def title_of(definition: Mapping[str, Any]) -> str | None:
    """None if blank."""
    return _first_text(definition.get("title"), as_dict(definition.get("annotations")).get("title"))


def _first_text(*candidates: object) -> str | None:
    return next((text for text in candidates if isinstance(text, str) and text.strip()), None)


def quoted(text: str) -> str:
    return cut(repr(text[:_ECHOED_CHARACTERS]), _QUOTED_CHARACTERS)


def _called(number: int, item: object) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return f"Tool {number} {quoted(name)}" if isinstance(name, str) and name else f"Tool {number}"


def _fault_in(item: object, accepted: Mapping[str, Definition]) -> str | None:
    if not isinstance(item, dict):
        return "it is not an object"
    name = item.get("name")
    if not isinstance(name, str) or not name.strip():
        return "it has no name"
    if not is_tool_name(name):
        return f"its name does not have 1 to {TOOL_NAME_MAX_CHARACTERS} printable characters"
    if name in accepted:
        return "an earlier one has the same name"
    if is_deeper_than(item, MAX_DEPTH):
        return "it is nested too deeply"
    schema = item.get("inputSchema", {})  # tools without arguments sometimes omit it
    if not isinstance(schema, dict) or not isinstance(schema.get("properties", {}), dict):
        return "its inputSchema is not an object"
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_output_schema(value: object) -> bool:
    return isinstance(value, dict) and value.get("type") == "object"


def _are_annotations(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(hint, str if name == "title" else bool)
        for name, hint in value.items()
        if name == "title" or name.endswith("Hint")
    )


def _are_icons(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) and _is_text(each.get("src")) for each in value)


_OPTIONAL_MEMBERS: Final[Mapping[str, Callable[[object], bool]]] = {
    "title": _is_text,
    "description": _is_text,
    "annotations": _are_annotations,
    "icons": _are_icons,
    "outputSchema": _is_output_schema,
    "_meta": _is_object,
}

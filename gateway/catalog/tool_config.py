"""Pure: what operators say about single tools in VENDOR_TOOL_CONFIG, over what the catalog and the vendor say.

    {"<vendor>": {"ttl": 60, "tools": {"<tool>": {"ttl": 300, "readOnly": true}}}}

Spec: §4.14 · D103
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from gateway.catalog.vendor import MAX_TTL_S, TOOL_NAME_MAX_CHARACTERS, ToolOverride, Vendor, is_tool_name
from gateway.lib import strict_json

DEFAULT_TTL_S = 60
_MAX_DEPTH = 8
_NOTHING_SAID = ToolOverride()


class ToolConfigError(ValueError):
    """The value cannot be used; the text is one line that begins with the key at fault."""

    def __init__(self, text: str) -> None:
        super().__init__("".join(each if each.isprintable() else "?" for each in text))


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """How calls of one tool are treated. `ttl_s` is how long a result may be used again, 0 never.

    `named`: an operator named the tool, so that its results are kept on every route.
    """

    read_only: bool
    ttl_s: int
    named: bool = False

    @property
    def keeps_results(self) -> bool:
        """Whether one result may answer several calls at all."""
        return self.read_only and self.ttl_s > 0


@dataclass(frozen=True, slots=True)
class VendorToolConfig:
    """One vendor's part; `ttl_s` is for the tools that are not named."""

    ttl_s: int | None = None
    tools: Mapping[str, ToolOverride] = field(default_factory=lambda: MappingProxyType({}), hash=False)


class ToolConfig:
    """The whole value. It never changes."""

    __slots__ = ("_by_vendor",)

    def __init__(self, by_vendor: Mapping[str, VendorToolConfig] | None = None) -> None:
        self._by_vendor = MappingProxyType(dict(by_vendor or {}))

    def policy(self, vendor: Vendor, tool: str, definition: Mapping[str, Any]) -> ToolPolicy:
        """How calls of `tool` are treated; `tool` and `definition` are the vendor's own.

        The operator's word counts before the catalog's, and the catalog's before the vendor's. A tool that is named
        with a time is read-only as well: nobody gives a time to results that must not be kept. But where the catalog
        or the vendor says outright that it writes, only `readOnly` contradicts: there, a slip would lose writes.
        """
        ours = self._by_vendor.get(vendor.slug, VendorToolConfig())
        said, shipped = ours.tools.get(tool, _NOTHING_SAID), vendor.tools.get(tool, _NOTHING_SAID)
        annotations = definition.get("annotations")
        hint = annotations.get("readOnlyHint") if isinstance(annotations, Mapping) else None
        implied = True if said.ttl_seconds and hint is not False else None
        read_only = _first(said.read_only, shipped.read_only, implied, hint is True)
        ttl_s = _first(said.ttl_seconds, ours.ttl_s, shipped.ttl_seconds, DEFAULT_TTL_S)
        return ToolPolicy(read_only, min(ttl_s, MAX_TTL_S), named=tool in ours.tools)

    def __repr__(self) -> str:
        return f"ToolConfig({sorted(self._by_vendor)})"


def parse_tool_config(text: str) -> ToolConfig:
    """The configuration in `text`; none in an empty one.

    Raises: ToolConfigError naming the first key at fault: a word that is misspelt must not be a rule that is missing.
    """
    if not text.strip():
        return ToolConfig()
    try:
        document = strict_json.loads(text.encode(), max_depth=_MAX_DEPTH)
    except strict_json.StrictJSONError as fault:
        raise ToolConfigError(fault.reason.replace("the body", "it")) from fault
    vendors = _object(document, "it")
    return ToolConfig({slug: _vendor(each, slug) for slug, each in vendors.items()})


def _vendor(value: object, slug: str) -> VendorToolConfig:
    members = _object(value, slug, {"ttl", "tools"})
    tools = _object(members.get("tools", {}), f"{slug}.tools")
    ttl_s = _ttl(members["ttl"], f"{slug}.ttl") if "ttl" in members else None
    return VendorToolConfig(
        ttl_s, MappingProxyType({name: _tool(each, name, f"{slug}.tools.{name}") for name, each in tools.items()})
    )


def _tool(value: object, name: str, key: str) -> ToolOverride:
    if not is_tool_name(name):
        raise ToolConfigError(f"{key[:200]} must be a tool name of 1 to {TOOL_NAME_MAX_CHARACTERS} characters")
    members = _object(value, key, {"ttl", "readOnly"})
    if not members:
        raise ToolConfigError(f"{key} must have ttl or readOnly")
    read_only = members.get("readOnly")
    if "readOnly" in members and not isinstance(read_only, bool):
        raise ToolConfigError(f"{key}.readOnly must be true or false")
    ttl_s = _ttl(members["ttl"], f"{key}.ttl") if "ttl" in members else None
    return ToolOverride(read_only=read_only, ttl_seconds=ttl_s)


def _object(value: object, key: str, known: set[str] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ToolConfigError(f"{key} must be an object")
    unknown = sorted(value.keys() - known) if known else []
    if unknown:
        raise ToolConfigError(f"{key}.{unknown[0][:80]} is not known; known are {' and '.join(sorted(known or ()))}")
    return value


def _ttl(value: object, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_TTL_S:
        raise ToolConfigError(f"{key} must be a whole number of seconds from 0 to {MAX_TTL_S}")
    return value


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)

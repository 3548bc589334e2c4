"""Pure: operators' settings for single tools (VENDOR_TOOL_CONFIG), which override the catalog and the vendor.

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

# Seconds that a read-only tool's result is cached without any `ttl`.
DEFAULT_TTL_S = 60
# JSON nesting; the documented shape needs 4 levels.
_MAX_DEPTH = 8
_NO_OVERRIDE = ToolOverride()


class ToolConfigError(ValueError):
    """The value is invalid. The message is one line that begins with the faulty key."""

    def __init__(self, text: str) -> None:
        super().__init__("".join(each if each.isprintable() else "?" for each in text))


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """How calls of one tool are treated."""

    # Results may be reused only if the tool is read-only.
    read_only: bool
    # Seconds for which a result may be reused; 0: never.
    ttl_s: int
    # An operator named the tool, so its results are cached on every route.
    named: bool = False

    @property
    def is_cacheable(self) -> bool:
        return self.read_only and self.ttl_s > 0


@dataclass(frozen=True, slots=True)
class VendorToolConfig:
    # Seconds, for tools without an entry.
    ttl_s: int | None = None
    tools: Mapping[str, ToolOverride] = field(default_factory=lambda: MappingProxyType({}), hash=False)


class ToolConfig:
    """The parsed setting, immutable."""

    __slots__ = ("_by_vendor",)

    def __init__(self, by_vendor: Mapping[str, VendorToolConfig] | None = None) -> None:
        self._by_vendor = MappingProxyType(dict(by_vendor or {}))

    def policy(self, vendor: Vendor, tool: str, definition: Mapping[str, Any]) -> ToolPolicy:
        """Precedence: operator, catalog, vendor. `tool` and `definition` are the vendor's own.

        A `ttl` alone also makes a tool read-only, because only results of read-only tools are cached. It does not where
        the catalog or the vendor states that the tool writes: there only `readOnly` overrides, so that a slip loses no
        write.
        """
        configured = self._by_vendor.get(vendor.slug, VendorToolConfig())
        override, shipped = configured.tools.get(tool, _NO_OVERRIDE), vendor.tools.get(tool, _NO_OVERRIDE)
        annotations = definition.get("annotations")
        hint = annotations.get("readOnlyHint") if isinstance(annotations, Mapping) else None
        implied_read_only = True if override.ttl_seconds and hint is not False else None
        read_only = _first(override.read_only, shipped.read_only, implied_read_only, hint is True)
        ttl_s = _first(override.ttl_seconds, configured.ttl_s, shipped.ttl_seconds, DEFAULT_TTL_S)
        return ToolPolicy(read_only, min(ttl_s, MAX_TTL_S), named=tool in configured.tools)

    def __repr__(self) -> str:
        return f"ToolConfig({sorted(self._by_vendor)})"


def parse_tool_config(text: str) -> ToolConfig:
    """The configuration in `text`; empty without any. Raises: ToolConfigError naming the first faulty key."""
    if not text.strip():
        return ToolConfig()
    try:
        # Unknown keys are errors: a misspelt rule must not silently be missing.
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

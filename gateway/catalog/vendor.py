"""Pure: the vendor type and its JSON form for the database row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from gateway.lib.hidden_text import replace_hidden

SLUG_MAX_CHARACTERS = 31  # of slugs and of tool prefixes
TOOL_NAME_MAX_CHARACTERS = 128
MAX_TTL_S = 3_600  # D103


def is_tool_name(name: str) -> bool:
    """Whether `name` is a valid tool name: 1 to TOOL_NAME_MAX_CHARACTERS visible characters."""
    if not 1 <= len(name) <= TOOL_NAME_MAX_CHARACTERS or not name.isprintable():
        return False
    return name.isascii() or replace_hidden(name, lambda _: "")[1] == 0


@dataclass(frozen=True, slots=True)
class CredentialField:
    """One value that a customer enters for a vendor. Without `options` it is free text. Spec: contract §4 · D64"""

    name: str
    label: str
    secret: bool
    required: bool
    placeholder: str = ""
    help: str = ""
    options: tuple[str, ...] = ()
    default: str = ""


@dataclass(frozen=True, slots=True)
class HeaderTemplate:
    """One header of every vendor call; `value` is literal text with `{field}` and `{b64:field:field}`."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Validation:
    """The tool call that proves a credential; a vendor without one is asked for its tool list."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)


@dataclass(frozen=True, slots=True)
class ToolOverride:
    """Catalog values that override the vendor's annotations; None keeps them. Spec: D103"""

    read_only: bool | None = None
    ttl_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor's MCP server over Streamable HTTP. Spec: contract §4 · D69, D111"""

    slug: str
    name: str
    url: str
    tool_prefix: str
    category: str = "Other"
    docs_url: str = ""
    timeout_seconds: float = 30
    headers: tuple[HeaderTemplate, ...] = ()
    fields: tuple[CredentialField, ...] = ()
    validation: Validation | None = None
    tools: Mapping[str, ToolOverride] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    verified: bool = False

    @property
    def customer_supplied_url(self) -> bool:
        """The address depends on the credential; such a vendor is never probed. Spec: §3 · contract §4"""
        return "{" in self.url  # the parser allows a brace only as part of a placeholder

    @property
    def secret_fields(self) -> frozenset[str]:
        # The values of these fields are never shown again.
        return frozenset(each.name for each in self.fields if each.secret)


def vendor_to_json(vendor: Vendor) -> dict[str, Any]:
    """`vendor` with the catalog file's keys, all present; `validation` is null without one."""
    validation = vendor.validation
    return {
        "slug": vendor.slug,
        "name": vendor.name,
        "url": vendor.url,
        "tool_prefix": vendor.tool_prefix,
        "category": vendor.category,
        "docs_url": vendor.docs_url,
        "timeout_seconds": vendor.timeout_seconds,
        "headers": [{"name": each.name, "value": each.value} for each in vendor.headers],
        "fields": [_field_to_json(each) for each in vendor.fields],
        "validation": validation and {"tool": validation.tool, "arguments": dict(validation.arguments)},
        "tools": {
            name: {"read_only": each.read_only, "ttl_seconds": each.ttl_seconds} for name, each in vendor.tools.items()
        },
        "verified": vendor.verified,
    }


def vendor_from_json(data: Mapping[str, Any]) -> Vendor:
    """The inverse of `vendor_to_json`. Keys that older releases did not write get their default. Raises: ValueError."""
    try:
        return Vendor(
            slug=data["slug"],
            name=data["name"],
            url=data["url"],
            tool_prefix=data["tool_prefix"],
            category=data.get("category", "Other"),
            docs_url=data.get("docs_url", ""),
            timeout_seconds=data.get("timeout_seconds", 30),
            headers=tuple(HeaderTemplate(name=each["name"], value=each["value"]) for each in data.get("headers", ())),
            fields=tuple(_field_from_json(each) for each in data.get("fields", ())),
            validation=_validation_from_json(data.get("validation")),
            tools=MappingProxyType(
                {
                    name: ToolOverride(read_only=each.get("read_only"), ttl_seconds=each.get("ttl_seconds"))
                    for name, each in data.get("tools", {}).items()
                }
            ),
            verified=data.get("verified", False),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a vendor definition: {type(error).__name__}: {error}") from error


def _field_to_json(each: CredentialField) -> dict[str, Any]:
    return {
        "name": each.name,
        "label": each.label,
        "secret": each.secret,
        "required": each.required,
        "placeholder": each.placeholder,
        "help": each.help,
        "options": list(each.options),
        "default": each.default,
    }


def _field_from_json(data: Mapping[str, Any]) -> CredentialField:
    return CredentialField(
        name=data["name"],
        label=data.get("label") or data["name"],
        secret=data.get("secret", True),  # secret by default: a value once shown cannot be hidden again
        required=data.get("required", True),
        placeholder=data.get("placeholder", ""),
        help=data.get("help", ""),
        options=tuple(data.get("options", ())),
        default=data.get("default", ""),
    )


def _validation_from_json(data: Mapping[str, Any] | None) -> Validation | None:
    if data is None:
        return None
    return Validation(tool=data["tool"], arguments=MappingProxyType(dict(data.get("arguments", {}))))

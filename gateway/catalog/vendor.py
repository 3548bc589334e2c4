"""Pure: the vendor type and its JSON form for the database row."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from gateway.lib.hidden_text import replace_hidden
from gateway.lib.sentences import sentence

SLUG_MAX_CHARACTERS = 31  # of slugs and of tool prefixes
TOOL_NAME_MAX_CHARACTERS = 128
CONNECTION_LEVELS = ("organization", "person")
RANDOM = "{random}"  # in the values of a sample
MAX_TIMEOUT_S = 300
MAX_TTL_S = 3_600  # D103


def is_tool_name(name: str) -> bool:
    """Whether `name` is a valid tool name: 1 to TOOL_NAME_MAX_CHARACTERS visible characters."""
    if not 1 <= len(name) <= TOOL_NAME_MAX_CHARACTERS or not name.isprintable():
        return False
    return name.isascii() or replace_hidden(name, lambda _: "")[1] == 0


class CredentialField(msgspec.Struct, frozen=True):
    """One value that a customer enters for a vendor. Without `options` it is free text. Spec: contract §4 · D64"""

    name: str
    label: str = ""  # without one, the name
    secret: bool = True  # a value once shown cannot be hidden again
    required: bool = True
    placeholder: str = ""
    help: str = ""
    options: tuple[str, ...] = ()
    default: str = ""

    def __post_init__(self) -> None:
        force_setattr(self, "label", self.label or self.name)


# Categories of the shipped catalog, for the catalogs of languages; a page shows any other as it is written.
CATEGORIES = (
    sentence("Automation"),
    sentence("Cloud marketplace"),
    sentence("Communication"),
    sentence("Data"),
    sentence("Developer tools"),
    sentence("IT documentation"),
    sentence("Knowledge"),
    sentence("Monitoring"),
    sentence("Payments"),
    sentence("Project management"),
    sentence("RMM and PSA"),
    sentence("Sales"),
    sentence("Security"),
    sentence("Support"),
    sentence("Web research"),
)


class HeaderTemplate(msgspec.Struct, frozen=True):
    """One header of every vendor call; `value` is literal text with `{field}` and `{b64:field:field}`."""

    name: str
    value: str


class Validation(msgspec.Struct, frozen=True):
    """The tool call that proves a credential; a vendor without one is asked for its tool list."""

    tool: str
    arguments: Mapping[str, Any] = {}


class ToolOverride(msgspec.Struct, frozen=True):
    """Catalog values that override the vendor's annotations; None keeps them. Spec: D103"""

    read_only: bool | None = None
    ttl_seconds: int | None = None


class OAuthSettings(msgspec.Struct, frozen=True):
    """How people sign in to the vendor. Without `issuer` the vendor's own metadata names it. Spec: contract §8"""

    issuer: str = ""
    # Of a client that was registered by hand; without one the gateway registers itself.
    client_id: str = ""
    # The variables of the environment that hold this client's id, in place of `client_id`, and its secret.
    client_id_env: str = ""
    client_secret_env: str = ""
    # Those of them that the environment lacks. Never in a file: `registered_clients` fills it in.
    missing_variables: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    # The levels of CONNECTION_LEVELS that are offered.
    connections: tuple[str, ...] = CONNECTION_LEVELS

    @property
    def is_registered_by_hand(self) -> bool:
        return bool(self.client_id or self.client_id_env)


class Vendor(msgspec.Struct, frozen=True):
    """A vendor's MCP server over Streamable HTTP. Spec: contract §4 · D69, D111"""

    slug: str
    name: str
    url: str
    tool_prefix: str = ""  # without one, the slug with underscores
    category: str = sentence("Other")
    docs_url: str = ""
    timeout_seconds: int | float = 30
    headers: tuple[HeaderTemplate, ...] = ()
    fields: tuple[CredentialField, ...] = ()
    validation: Validation | None = None
    tools: Mapping[str, ToolOverride] = {}
    verified: bool = False
    # Values of the fields with which anybody may try the vendor; RANDOM in them is replaced. None: it has no sample.
    sample: Mapping[str, str] | None = None
    # None: its credentials are typed in. Beside fields, either is enough. docs/decisions/0111
    oauth: OAuthSettings | None = None
    # False: it is spoken to in the versions before MCP 2026-07-28, and is not asked. docs/decisions/0106
    newest_protocol: bool = True

    def __post_init__(self) -> None:
        force_setattr(self, "tool_prefix", self.tool_prefix or self.slug.replace("-", "_"))
        force_setattr(self, "category", self.category or "Other")

    @property
    def takes_key(self) -> bool:
        """Credentials can be typed in, even if there are none to type."""
        return bool(self.fields) or self.oauth is None

    @property
    def sign_in_levels(self) -> tuple[str, ...]:
        """Those of CONNECTION_LEVELS at which people can sign in to the vendor now."""
        return self.oauth.connections if self.oauth is not None and not self.awaits_client else ()

    @property
    def awaits_client(self) -> bool:
        """Whether an operator has to register a client at the vendor before people can sign in there."""
        return self.oauth is not None and bool(self.oauth.missing_variables)

    @property
    def customer_supplied_url(self) -> bool:
        """The address depends on the credential; such a vendor is never probed. Spec: §3 · contract §4"""
        return "{" in self.url  # the parser allows a brace only as part of a placeholder

    def sample_fields(self, random: str) -> dict[str, str] | None:
        return None if self.sample is None else {k: value.replace(RANDOM, random) for k, value in self.sample.items()}

    @property
    def secret_fields(self) -> frozenset[str]:
        # The values of these fields are never shown again.
        return frozenset(each.name for each in self.fields if each.secret)


def vendor_to_json(vendor: Vendor) -> dict[str, Any]:
    """`vendor` with the catalog file's keys, all present; `validation` is null without one."""
    definition: dict[str, Any] = msgspec.to_builtins(vendor)
    return definition


def vendor_from_json(data: Mapping[str, Any]) -> Vendor:
    """The inverse of `vendor_to_json`. Raises: ValueError.

    Keys that older releases did not write get their default; those that only newer ones write are passed over.
    """
    try:
        return msgspec.convert(data, Vendor, strict=True)
    except msgspec.ValidationError as error:
        raise ValueError(f"not a vendor definition: {error}") from error

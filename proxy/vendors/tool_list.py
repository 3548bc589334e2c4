"""Pure: a vendor's tool list, as received and as parsed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from gateway.catalog.tool_config import ToolConfig, ToolPolicy
from gateway.catalog.vendor import Vendor
from proxy.protocol import item_addresses, item_results, replies, tool_definitions
from proxy.protocol.tool_definitions import Definition
from proxy.protocol.tool_names import ExposedTool, ExposedTools

MAX_LIST_BYTES = 4 * 1024 * 1024  # of all pages of one list, which are held together
# Memory of a parsed list beside its texts. tests/unit/proxy/vendors/test_tool_list.py compares both with what is used.
LIST_BYTES = 2_000
TOOL_BYTES = 600  # names, table entries and the policy of one tool
_basis = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Definition).decode


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ReceivedList:
    """The unparsed tools of all pages. `digest` names the list: equal bytes of one vendor are parsed alike."""

    tools: Sequence[Raw]
    size_bytes: int
    digest: bytes

    @classmethod
    def of(cls, vendor: Vendor, tools: Sequence[Raw], size_bytes: int) -> ReceivedList:
        found = hashlib.sha256(_basis((vendor.slug, vendor.tool_prefix, vendor.tools)))
        for each in tools:
            found.update(b"%d\n" % len(bytes(each)))  # no two lists have one text
            found.update(each)
        return cls(tools, size_bytes, found.digest())


@dataclass(frozen=True, slots=True)
class ToolList:
    """A parsed list. All credentials that got the same list share it."""

    tools: ExposedTools
    definitions: Mapping[str, bytes]  # JSON by the vendor's own name, without hidden characters
    encoded: Mapping[str, bytes]  # by exposed name; JSON for the unified endpoint, to be joined into a list
    # By exposed name: the same for the vendor's own endpoint, where they differ: of tools with an app.
    own_encoded: Mapping[str, bytes] = field(kw_only=True, default_factory=dict)
    policies: Mapping[str, ToolPolicy]  # by the vendor's own name
    # By the key of an app's address: the vendor's names of the tools that it belongs to.
    apps: Mapping[str, tuple[str, ...]] = field(kw_only=True, default_factory=dict)
    digest: bytes = b""  # of the list as received
    received_bytes: int = 0
    kept_bytes: int = 0  # memory of this object

    def policy(self, tool: ExposedTool) -> ToolPolicy:
        """Spec: D103"""
        return self.policies[tool.vendor_name]

    def shown(self, exposed_name: str, *, is_unified: bool) -> bytes:
        """The tool's JSON as one of the endpoints lists it. docs/decisions/0104"""
        own = None if is_unified else self.own_encoded.get(exposed_name)
        return self.encoded[exposed_name] if own is None else own

    def definition(self, vendor_name: str) -> Definition:
        """Parsed anew at each call: parsed definitions take five times the memory of their text."""
        return _decode(self.definitions[vendor_name])


def read_list(vendor: Vendor, received: ReceivedList, tool_config: ToolConfig) -> tuple[ToolList, list[str]]:
    """The parsed list and its problems; thread-safe. Raises: BadVendorReply."""
    accepted = tool_definitions.accept_definitions(replies.tools_of(received.tools))
    content = build_list(vendor, accepted.for_callers, tool_config, received.digest, received.size_bytes)
    return content, accepted.problems


def definitions_of(received: ReceivedList) -> dict[str, Definition]:
    """The vendor's unchanged definitions, by its own names. Raises: BadVendorReply."""
    accepted = tool_definitions.accept_definitions(replies.tools_of(received.tools))
    return {each["name"]: each for each in accepted.definitions}


def build_list(
    vendor: Vendor,
    definitions: Sequence[dict[str, Any]],
    tool_config: ToolConfig,
    digest: bytes = b"",
    received_bytes: int = 0,
) -> ToolList:
    tools = ExposedTools(vendor.tool_prefix, [definition["name"] for definition in definitions])
    by_name = {definition["name"]: definition for definition in definitions}
    texts = {name: msgspec.json.encode(definition) for name, definition in by_name.items()}
    encoded: dict[str, bytes] = {}
    own_encoded: dict[str, bytes] = {}
    for tool in tools.tools:
        own = texts[tool.vendor_name]
        definition = tool_definitions.exposed_definition(by_name[tool.vendor_name], tool.exposed_name)
        with_app = item_results.with_exposed_app(definition, vendor.slug)
        shown = msgspec.json.encode(with_app)
        encoded[tool.exposed_name] = own if own == shown else shown  # one object for both, where nothing differs
        if with_app is not definition:
            own_encoded[tool.exposed_name] = msgspec.json.encode(definition)
    apps = _apps(by_name)
    distinct: dict[ToolPolicy, ToolPolicy] = {}
    policies = {
        name: distinct.setdefault(policy, policy)
        for name, each in by_name.items()
        for policy in [tool_config.policy(vendor, name, each)]
    }
    kept_bytes = (
        LIST_BYTES
        + sum(map(len, own_encoded.values()))
        + sum(TOOL_BYTES + len(address) for address in apps)
        + sum(
            TOOL_BYTES + len(own) + (0 if shown is own else len(shown))
            for own, shown in ((texts[tool.vendor_name], encoded[tool.exposed_name]) for tool in tools.tools)
        )
    )
    return ToolList(
        *(tools, texts, encoded, policies, digest, received_bytes, kept_bytes),
        own_encoded=own_encoded,
        apps=apps,
    )


def _apps(definitions: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, definition in definitions.items():
        for key in {item_addresses.app_key(each) for each in item_results.apps_of(definition)}:
            found[key] = (*found.get(key, ()), name)
    return found

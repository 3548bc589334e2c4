"""Pure: a vendor's tool names, the names that callers use, and the mapping between them."""

import hashlib
import re
from collections.abc import Iterable
from typing import Final

import msgspec

MAX_LENGTH: Final = 64  # characters; model APIs refuse longer names
_HASH_DIGITS: Final = 6

_other_characters = re.compile(r"[^A-Za-z0-9_-]")


class ExposedTool(msgspec.Struct, frozen=True):
    """The vendor's name, the name for MCP callers, and the CLI command."""

    vendor_name: str
    exposed_name: str
    command: str


def exposed_name(prefix: str, vendor_tool_name: str) -> str:
    """Starts with `<prefix>_` and matches `^[A-Za-z0-9_-]{1,64}$`. Spec: D111 · protocol.md A.7"""
    name = _prefixed(prefix, vendor_tool_name)
    return name if len(name) <= MAX_LENGTH else _with_hash(name, vendor_tool_name)


def cli_command(prefix: str, vendor_tool_name: str) -> str:
    """`acme_list_devices` becomes `list-devices`. Spec: §4.14 · protocol.md F (1)"""
    command = _only_safe(vendor_tool_name).replace("_", "-")
    return command.removeprefix(prefix.replace("_", "-") + "-") or command


class ExposedTools:
    """The tools of one vendor by name. No spelling means two tools. Spec: D111 · protocol.md F (1)"""

    def __init__(self, prefix: str, vendor_tool_names: Iterable[str]) -> None:
        self.prefix = prefix
        # No two tools share a name: the allowlist could be bypassed under another tool's name. The tool whose name
        # needs no change keeps it, else the first by vendor name. The order of the vendor's list does not matter.
        vendor_names = sorted(set(vendor_tool_names), key=lambda name: (_only_safe(name) != name, name))
        exposed = _exposed_names(prefix, vendor_names)
        commands = _commands(prefix, vendor_names, exposed)
        tools = [ExposedTool(name, exposed[name], commands[name]) for name in vendor_names]
        self.tools: tuple[ExposedTool, ...] = tuple(sorted(tools, key=lambda tool: tool.exposed_name))
        self._by_vendor_name = {tool.vendor_name: tool for tool in tools}
        self._by_exposed = {tool.exposed_name: tool for tool in tools}
        self._by_command = {tool.command: tool for tool in tools}

    def by_exposed(self, name: str) -> ExposedTool | None:
        """By exposed name or `<prefix>__<vendor's name>`."""
        tool = self._by_exposed.get(name)
        if tool is not None or not name.startswith(f"{self.prefix}__"):
            return tool
        bare = name[len(self.prefix) + 2 :]
        exact = self._by_vendor_name.get(name) or self._by_vendor_name.get(bare)
        return exact or self._by_exposed.get(f"{self.prefix}_{bare}")

    def by_cli_name(self, name: str) -> ExposedTool | None:
        """By the vendor's name, a name for MCP, or the command."""
        return self._by_vendor_name.get(name) or self.by_exposed(name) or self._by_command.get(name)


def _exposed_names(prefix: str, vendor_names: list[str]) -> dict[str, str]:
    exposed = {name: name for name in vendor_names if exposed_name(prefix, name) == name}
    taken = set(exposed)
    for vendor_name in vendor_names:
        if vendor_name in exposed:
            continue
        # The first tool keeps the name; later ones get a hash.
        candidate, salt = exposed_name(prefix, vendor_name), 0
        while candidate in taken:
            candidate = _with_hash(_prefixed(prefix, vendor_name), vendor_name, salt)
            salt += 1  # a second attempt needs a deliberate collision of hashes
        exposed[vendor_name] = candidate
        taken.add(candidate)
    return exposed


def _commands(prefix: str, vendor_names: list[str], exposed: dict[str, str]) -> dict[str, str]:
    owners = {name: name for name in vendor_names}
    commands = {}
    for vendor_name in vendor_names:
        command = cli_command(prefix, vendor_name)
        owner = owners.setdefault(command, vendor_name)  # the first tool keeps the command
        commands[vendor_name] = command if owner == vendor_name else exposed[vendor_name]
    return commands


def _prefixed(prefix: str, vendor_tool_name: str) -> str:
    starts_right = vendor_tool_name.startswith(f"{prefix}_")
    return _only_safe(vendor_tool_name if starts_right else f"{prefix}_{vendor_tool_name}")


def _only_safe(name: str) -> str:
    return _other_characters.sub("_", name)


def _with_hash(name: str, vendor_tool_name: str, salt: int = 0) -> str:
    hashed = f"{vendor_tool_name}\0{salt}" if salt else vendor_tool_name
    digest = hashlib.sha256(hashed.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
    return f"{name[: MAX_LENGTH - 1 - _HASH_DIGITS]}_{digest}"

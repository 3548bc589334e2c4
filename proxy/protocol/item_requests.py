"""Pure: the params of requests for one resource or prompt, and their errors.

Spec: MCP 2025-11-25 and 2026-07-28, server/resources, server/prompts, server/utilities/completion
"""

from __future__ import annotations

from typing import Any, Final

from gateway.catalog.vendor import TOOL_NAME_MAX_CHARACTERS
from proxy.protocol import item_addresses
from proxy.protocol.item_kinds import GET, READ, SUBSCRIPTIONS

MAX_REQUEST_BYTES: Final = 256 * 1024  # arguments of a prompt are texts that a person typed
RESOURCE_NOT_FOUND: Final = -32002  # INVALID_PARAMS in the modern revision

# A name or address, whether it is an address, the other params for the vendor, and the fault or "".
Read = tuple[str, bool, dict[str, Any], str]


def read(method: str, params: dict[str, Any]) -> Read:
    """A name that cannot be used is empty."""
    if method == READ or method in SUBSCRIPTIONS:
        return _address(params.get("uri"), {}, "params.uri")
    if method == GET:
        arguments = params.get("arguments")
        if not _are_texts(arguments):
            return _name(params.get("name"), {}, "params.name", "params.arguments must be an object of texts")
        return _name(params.get("name"), {} if arguments is None else {"arguments": arguments}, "params.name")
    return _completion(params)


def _completion(params: dict[str, Any]) -> Read:
    ref: Any = params.get("ref")
    argument: Any = params.get("argument")
    context: Any = params.get("context")
    fault = ""
    if type(ref) is not dict or ref.get("type") not in ("ref/prompt", "ref/resource"):
        return "", False, {}, "params.ref must name a prompt or a resource"
    if type(argument) is not dict or not all(type(argument.get(each)) is str for each in ("name", "value")):
        fault = "params.argument must have a name and a value"
    elif context is not None and (type(context) is not dict or not _are_texts(context.get("arguments"))):
        fault = "params.context must have arguments, an object of texts"
    sent: dict[str, Any] = {} if fault else {"argument": {each: argument[each] for each in ("name", "value")}}
    if not fault and context is not None:
        sent["context"] = {"arguments": context.get("arguments") or {}}
    if ref["type"] == "ref/resource":
        return _address(ref.get("uri"), sent, "params.ref.uri", fault)
    return _name(ref.get("name"), sent, "params.ref.name", fault)


def _address(value: object, sent: dict[str, Any], member: str, fault: str = "") -> Read:
    found = item_addresses.fault_in(value)
    if found or not isinstance(value, str):
        # Kept, and cut, for the request log.
        named = value if isinstance(value, str) else ""
        return named, True, {}, f"{member} cannot be used: {found}"
    return value, True, sent, fault


def _name(value: object, sent: dict[str, Any], member: str, fault: str = "") -> Read:
    if not isinstance(value, str) or not value or len(value) > TOOL_NAME_MAX_CHARACTERS:
        return "", False, {}, f"{member} must be the name of a prompt"
    return value, False, sent, fault


def _are_texts(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())

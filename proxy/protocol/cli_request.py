"""Pure: the body of a CLI call."""

from typing import Any

import msgspec

from gateway.catalog.vendor import TOOL_NAME_MAX_CHARACTERS


class CliRequest(msgspec.Struct, frozen=True):
    """`tool` in any spelling that callers may use."""

    tool: str
    args: dict[str, Any]


class CliRequestError(ValueError):
    """`message` tells the caller what to change (HTTP 400)."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def parse_cli_request(obj: object) -> CliRequest:
    """Raises: CliRequestError. Spec: §4.14, §7 · D16, D101"""
    if not isinstance(obj, dict):
        raise CliRequestError("The body must be a JSON object.")
    if "tool" not in obj:
        raise CliRequestError("The field 'tool' is required.")
    tool = obj["tool"]
    if not isinstance(tool, str) or not tool:
        raise CliRequestError("The field 'tool' must be the name of a tool.")
    if len(tool) > TOOL_NAME_MAX_CHARACTERS:
        raise CliRequestError(f"The field 'tool' must not be longer than {TOOL_NAME_MAX_CHARACTERS} characters.")
    args = obj.get("args", {})  # unknown members are ignored
    if not isinstance(args, dict):
        raise CliRequestError("The field 'args' must be an object.")
    return CliRequest(tool, args)

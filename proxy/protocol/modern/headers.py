"""Pure: the `Mcp-*` headers of a request, which must say what its body says.

Spec: MCP 2026-07-28, basic/transports/streamable-http, Request Metadata
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

VERSION: Final = "mcp-protocol-version"
METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
PARAM_PREFIX: Final = "mcp-param-"
# The params that Mcp-Name repeats.
_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PREFIX: Final = b"mcp-"
_SPELLING: Final = {VERSION: "MCP-Protocol-Version", METHOD: "Mcp-Method", NAME: "Mcp-Name"}

_is_plain = re.compile(rb"[\t\x20-\x7e]*").fullmatch
_is_safe = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?").fullmatch
_sentinel = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)

# By lower-case name; None for a header that was sent twice or has characters that a header may not have.
McpHeaders = Mapping[str, str | None]


def read(raw: Iterable[tuple[bytes, bytes]]) -> McpHeaders:
    """The `mcp-*` headers of a request; names are in lower case, as ASGI has them."""
    found: dict[str, str | None] = {}
    for name, value in raw:
        if name.startswith(_PREFIX):
            text = name.decode("latin-1")
            # Readers of the first and of the last one would disagree.
            found[text] = None if text in found or not _is_plain(value) else value.strip(b" \t").decode("ascii")
    return found


def decoded(value: str) -> str | None:
    """The text that a header's value stands for; None for a sentinel with a malformed payload."""
    found = _sentinel.fullmatch(value)
    if found is None:
        return value
    try:
        payload = base64.b64decode(found[1], validate=True)
        text = payload.decode()
    except (binascii.Error, ValueError):
        return None
    return text if base64.b64encode(payload).decode("ascii") == found[1] else None  # one spelling for each text


def encoded(text: str) -> str:
    """The header value that stands for a text: the text itself where a header can have it."""
    if _is_safe(text) and not _sentinel.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode('ascii')}?="


def of_request(method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """The headers that repeat a request's method and name; the version is the same for all requests of a session."""
    found = {_SPELLING[METHOD]: method}
    name = params.get(_NAMED_BY.get(method, ""))
    if isinstance(name, str):
        found[_SPELLING[NAME]] = encoded(name)
    return found


def contradiction(headers: McpHeaders, version: str, method: str, params: Mapping[str, Any]) -> str | None:
    """The fault of the three standard headers, in words; None if they say what the body says."""
    name = params.get(_NAMED_BY.get(method, ""))
    wanted = {VERSION: version, METHOD: method}
    return next(
        (fault for header, expected in wanted.items() if (fault := _fault(headers, header, expected, is_coded=False))),
        None,
    ) or (_fault(headers, NAME, name, is_coded=True) if isinstance(name, str) else None)


def _fault(headers: McpHeaders, header: str, expected: str, *, is_coded: bool) -> str | None:
    if header not in headers:
        return f"{_SPELLING[header]} is missing."
    value = headers[header]
    said = decoded(value) if value is not None and is_coded else value
    if said is None:
        return f"{_SPELLING[header]} is malformed or was sent twice."
    return None if said == expected else f"{_SPELLING[header]} does not say what the body says."

"""Pure: the addresses a token may be meant for, in their one spelling. Spec: RFC 8707 · RFC 9728 · D115, D118"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

UNIFIED_PATH = "/v1/mcp"
MAX_RESOURCES = 10

_VENDOR_PATH = re.compile(r"/v1/([a-z0-9][a-z0-9-]{0,30})/mcp")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def unified(base_url: str) -> str:
    """The address of the endpoint for all vendors."""
    return f"{base_url}{UNIFIED_PATH}"


def vendor_path(vendor: str) -> str:
    """The path of one vendor's own endpoint."""
    return f"/v1/{vendor}/mcp"


def for_vendor(base_url: str, vendor: str) -> str:
    """The address of one vendor's own endpoint."""
    return f"{base_url}{vendor_path(vendor)}"


def is_ours(base_url: str, resource: str) -> bool:
    """Whether `resource` is one of our MCP addresses in its one spelling; the vendor need not exist."""
    return resource == unified(base_url) or vendor_of(base_url, resource) is not None


def vendor_of(base_url: str, resource: str) -> str | None:
    """The vendor whose own endpoint `resource` names, or None."""
    if not resource.startswith(f"{base_url}/"):
        return None
    match = _VENDOR_PATH.fullmatch(resource[len(base_url) :])
    return None if match is None else match[1]


def canonical(base_url: str, sent: str) -> str | None:
    """The one spelling of a resource that a client sent, or None when it is not ours.

    Clients send the bare origin, a trailing slash, another case or a query; none of these names another thing.
    """
    origin = _origin(sent)
    if origin is None or origin != _origin(base_url) or "#" in sent:
        return None
    path = urlsplit(sent).path.removesuffix("/")
    if path in {"", UNIFIED_PATH}:
        return unified(base_url)
    return f"{base_url}{path}" if _VENDOR_PATH.fullmatch(path) else None


def _origin(url: str) -> tuple[str, str, int | None] | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname or parts.username is not None or parts.password is not None:
        return None
    return parts.scheme, parts.hostname, port or _DEFAULT_PORTS.get(parts.scheme)

"""Pure: the canonical addresses of our MCP endpoints. Spec: RFC 8707 · RFC 9728 · D115, D118"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

UNIFIED_PATH = "/v1/mcp"
MAX_RESOURCES = 10  # in one request

_VENDOR_PATH = re.compile(r"/v1/([a-z0-9][a-z0-9-]{0,30})/mcp")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def unified(base_url: str) -> str:
    return f"{base_url}{UNIFIED_PATH}"


def vendor_path(vendor: str) -> str:
    return f"/v1/{vendor}/mcp"


def for_vendor(base_url: str, vendor: str) -> str:
    return f"{base_url}{vendor_path(vendor)}"


def is_ours(base_url: str, resource: str) -> bool:
    """Accepts the canonical spelling only; the vendor need not exist."""
    return resource == unified(base_url) or vendor_of(base_url, resource) is not None


def vendor_of(base_url: str, resource: str) -> str | None:
    """Returns the vendor of a vendor endpoint's address, else None."""
    if not resource.startswith(f"{base_url}/"):
        return None
    match = _VENDOR_PATH.fullmatch(resource[len(base_url) :])
    return None if match is None else match[1]


def canonical(base_url: str, sent: str) -> str | None:
    """Returns the canonical spelling of a sent resource, or None for a foreign one."""
    origin = _origin(sent)
    if origin is None or origin != _origin(base_url) or "#" in sent:
        return None
    # Clients send the bare origin, a trailing slash, another case or a query; all of them mean the same endpoint.
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

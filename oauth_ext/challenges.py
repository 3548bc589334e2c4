"""Pure: `WWW-Authenticate` values that tell an MCP client where to get a token. Spec: RFC 6750 3, RFC 9728 5.1"""

from __future__ import annotations

import re

from oauth_ext import scopes
from oauth_ext.resources import UNIFIED_PATH

INVALID_TOKEN = "invalid_token"  # noqa: S105
INSUFFICIENT_SCOPE = "insufficient_scope"
METADATA_PATH = "/.well-known/oauth-protected-resource"

# Characters that RFC 6750 forbids between the quotes. Clients parse headers with simple patterns, so: no escapes.
_FORBIDDEN = re.compile(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]")


def challenge(
    base_url: str,
    resource_path: str = UNIFIED_PATH,
    scope: str = scopes.ALL,
    error: str | None = None,
    description: str | None = None,
) -> str:
    """Returns one header value; `scope` lists every scope that is needed. Spec: protocol.md B.2"""
    metadata_url = f"{base_url}{METADATA_PATH}{resource_path}"
    if error == INSUFFICIENT_SCOPE:
        fields = [("error", error), ("scope", scope), ("resource_metadata", metadata_url)]
    else:
        fields = [("realm", "mcp"), ("resource_metadata", metadata_url), ("scope", scope)]
        # Without credentials in the request there is no error to name (RFC 6750 3.1).
        if error is not None:
            fields.append(("error", error))
    if error is not None and description:
        fields.append(("error_description", description))
    return "Bearer " + ", ".join(f'{name}="{_quotable(value)}"' for name, value in fields)


def _quotable(value: str) -> str:
    # Removes everything that could end the quotes or the header line.
    return _FORBIDDEN.sub("", value.replace('"', "'").replace("\\", "/"))

"""The account at the vendor that a connection belongs to: in the token answer, the ID token, or the user info.

It is shown to people, and decides nothing. Spec: OpenID Connect Core 3.1.3.7, 5.3
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.lib import strict_json
from gateway.lib.hidden_text import replace_hidden

MAX_CHARACTERS = 200
JSON_DEPTH = 16
# Members that vendors in use name it by, the most telling first.
_NAMES = ("email", "preferred_username", "username", "login", "name", "workspace_name")
_HOLDERS = ("account", "user", "team", "workspace")


def account_in(document: Mapping[str, Any], *, secrets: Sequence[str]) -> str:
    """The first name of an account in the document or in one of its holders; empty without one.

    `secrets`: a text that contains one of them is not shown.
    """
    inner = [each for name in _HOLDERS if isinstance(each := document.get(name), dict)]
    for holder in (document, *inner):
        for name in _NAMES:
            value = holder.get(name)
            if isinstance(value, str) and (shown := _shown(value)) and not any(s and s in value for s in secrets):
                return shown
    return ""


def claims_of(id_token: str, *, issuer: str, client_id: str) -> dict[str, Any]:
    """The claims of an ID token that came from the token endpoint; empty unless it is of this issuer, for this client.

    TLS proves its origin, so the signature is not checked: OpenID Connect Core 3.1.3.7 (6).
    """
    parts = id_token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = strict_json.loads(
            base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), max_depth=JSON_DEPTH
        )
    except (strict_json.StrictJSONError, binascii.Error, ValueError):
        return {}
    if not isinstance(claims, dict) or claims.get("iss") != issuer:
        return {}
    audience = claims.get("aud")
    return claims if client_id in (audience if isinstance(audience, list) else [audience]) else {}


def _shown(text: str) -> str:
    plain, _ = replace_hidden(" ".join(text.split()), lambda _: "")
    return plain[:MAX_CHARACTERS] if plain.isprintable() else ""

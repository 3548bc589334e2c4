"""Addresses of programs and addresses of people in a browser."""

from __future__ import annotations

_MACHINE_PREFIXES = ("/api/", "/oauth/", "/.well-known/", "/v1/")
_PERSON_PREFIXES = ("/oauth/authorize",)  # shown to people in a browser


# Documents that are the same for everyone, and that caches share: no session may leave a trace in them.
_PUBLIC_DOCUMENTS = frozenset({"/status.json", "/status.atom", "/api/schema"})


def is_public_document(path: str) -> bool:
    return path.startswith("/.well-known/") or path in _PUBLIC_DOCUMENTS


def is_for_machines(path: str) -> bool:
    return path.startswith(_MACHINE_PREFIXES) and not path.startswith(_PERSON_PREFIXES)


# Not /oauth/authorize, which people see.
OAUTH_ENDPOINTS = frozenset({"/oauth/token", "/oauth/revoke", "/oauth/register", "/oauth/device_authorization"})

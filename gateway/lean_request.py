"""The request that views of the hot path get: Django's, without what only pages need.

Django's own ASGI request fills some twenty members for every request. Here the ones that the hot path reads are made
at once and cheaply; the query is parsed when somebody asks; there are no form fields, cookies or files.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import cached_property, lru_cache
from io import BytesIO
from typing import Any

from django.http import HttpRequest, QueryDict
from django.urls import ResolverMatch
from django.utils.http import parse_header_parameters

Scope = MutableMapping[str, Any]


class LeanRequest(HttpRequest):
    """One request whose body is complete. `META` is what ASGIRequest makes of the headers."""

    request_id: str
    scope: Scope
    client_left = False  # set while the view runs: the connection is closed, and nobody is answered

    def __init__(self, scope: Scope, body: bytes, request_id: str) -> None:
        # Not calling HttpRequest's, which makes the members that this class leaves out or makes later.
        self.scope = scope
        self.request_id = request_id
        self.method = scope["method"].upper()
        self.path = self.path_info = scope["path"]
        self.resolver_match: ResolverMatch | None = None
        self._body = body
        self._stream = BytesIO(body)
        self._read_started = False
        self.META = _meta(scope)

    @cached_property
    def GET(self) -> QueryDict:  # type: ignore[override]  # noqa: N802
        """The query."""
        return QueryDict(self.META["QUERY_STRING"])

    @cached_property
    def content_type(self) -> str:  # type: ignore[override]
        """The media type, in lower case, without parameters."""
        declared: str = self.META.get("CONTENT_TYPE", "")
        return declared if declared == "application/json" else parse_header_parameters(declared)[0]

    def _get_scheme(self) -> str | None:
        return self.scope.get("scheme") or "http"


def _meta(scope: Scope) -> dict[str, Any]:
    peer, server = scope.get("client"), scope.get("server")
    meta: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"].upper(),
        "QUERY_STRING": scope.get("query_string", b"").decode("latin-1"),
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"],
        "SERVER_NAME": server[0] if server else "unknown",
        "SERVER_PORT": str(server[1]) if server else "0",
    }
    if peer:
        meta["REMOTE_ADDR"] = meta["REMOTE_HOST"] = peer[0]
        meta["REMOTE_PORT"] = peer[1]
    for name, value in scope["headers"]:
        key = _meta_key(name)
        if key is None:
            continue
        text = value.decode("latin-1")
        meta[key] = f"{meta[key]},{text}" if key in meta else text
    return meta


@lru_cache(maxsize=512)
def _meta_key(name: bytes) -> str | None:
    """Where a header stands. None for one with an underscore, which could pass for another one with a hyphen."""
    text = name.decode("latin-1")
    if "_" in text:
        return None
    key = text.upper().replace("-", "_")
    return key if key in ("CONTENT_LENGTH", "CONTENT_TYPE") else f"HTTP_{key}"

"""The request of hot-path views: Django's, without the members that only pages need.

Django's own ASGI request fills some twenty members. This one fills those that the hot path reads, and parses the query
on first use. It has no form fields, cookies or files.
"""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping, Sequence
from functools import cached_property, lru_cache
from io import BytesIO
from typing import Any

from django.http import HttpRequest, QueryDict
from django.urls import ResolverMatch
from django.utils.http import parse_header_parameters

from gateway.incoming_body import IncomingBody
from gateway.lib import body_budgets
from gateway.lib.byte_budget import FREE_BYTES, ByteBudget, Reservation
from gateway.lib.declared_length import declared_length
from gateway.lib.shared_body import SharedBody
from gateway.middleware.refusal import Refusal
from gateway.middleware.request_id import request_id_of

Scope = MutableMapping[str, Any]
MAX_KNOWN_NAME_BYTES = 64  # of a header name that is cached: clients choose the names
FOREIGN_HOST = ("invalid_request", "The Host header does not name this service.")


class HotPathRequest(HttpRequest):
    """One request. `META` is what ASGIRequest makes of the headers.

    The body is there at once if it came with the head; otherwise `incoming` reads it, and `load_body` puts it in place.
    `reservations` are the request's bytes of the budgets for large bodies, until its answer has been taken.
    """

    request_id: str
    scope: Scope
    client_disconnected = False  # set while the view runs: the connection is closed, and no response is sent
    is_cut_off = False  # set while the view runs: the process stops, and the call has used up its time
    incoming: IncomingBody | None = None
    response_headers: Sequence[tuple[bytes, bytes]] = ()  # encoded, beside those of the response itself
    _response_reservation: Reservation | None = None
    owner: Hashable = None  # the caller's organization, whose share of the byte budgets it uses

    def __init__(self, scope: Scope) -> None:
        # Not calling HttpRequest's, which makes the members that this class leaves out or makes later.
        self.scope = scope
        self.META = _meta(scope)
        self.request_id = request_id_of(self.META.get("HTTP_X_REQUEST_ID"))
        self.method = scope["method"].upper()
        self.path = self.path_info = scope["path"]
        self.resolver_match: ResolverMatch | None = None
        self.reservations: list[Reservation | SharedBody] = []
        self._read_started = True  # Django refuses `body` while this is True. Here: the body has not arrived yet.

    async def load_body(self) -> bytes:
        """The whole body; one of more than FREE_BYTES counts in the budget. Raises: Refusal; ClientDisconnected."""
        if self.incoming is not None:
            body = await self.incoming.read(self._body_reservation)
            self.incoming = None
            self.set_body(body)
        elif len(self._body) > FREE_BYTES:
            self._body_reservation().settle(len(self._body))
        return self._body

    def count_response_bytes(self, size_bytes: int) -> None:
        """Reserve `size_bytes` of the response budget until the client has received the response."""
        if self._response_reservation is None:
            self._response_reservation = self._reserve(body_budgets.vendors())
        self._response_reservation.settle(size_bytes)

    def hold(self, body: SharedBody) -> None:
        """Send the body, which is released with the request."""
        body.hold()
        self.reservations.append(body)

    def release(self) -> None:
        """The request is over: give its bytes back to the budgets."""
        while self.reservations:
            self.reservations.pop().release()

    def _body_reservation(self) -> Reservation:
        return self._reserve(body_budgets.inbound())

    def _reserve(self, budget: ByteBudget) -> Reservation:
        reservation = budget.new_reservation(self.owner)
        self.reservations.append(reservation)
        return reservation

    def set_body(self, body: bytes) -> None:
        """The whole body has come."""
        self._body = body
        self._stream = BytesIO(body)
        self._read_started = False

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


def check_head(request: HotPathRequest, max_body_bytes: int) -> int | None:
    """The declared length of the body. Raises: Refusal."""
    length = declared_length(request.META.get("CONTENT_LENGTH") or "")
    if length is not None and length > max_body_bytes:
        raise Refusal.too_large(max_body_bytes)
    if request.META.get("HTTP_CONTENT_ENCODING"):
        raise Refusal(415, "unsupported_encoding", "Send the body without Content-Encoding.")
    return length


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
        # No function of ours around the lookup: it would cost as much again, for each header of each request.
        key = _cached_meta_key(name) if len(name) <= MAX_KNOWN_NAME_BYTES else _meta_key(name)
        if key is None:
            continue
        text = value.decode("latin-1")
        meta[key] = f"{meta[key]},{text}" if key in meta else text
    return meta


def _meta_key(name: bytes) -> str | None:
    """The header's key in META. None for one with an underscore, which could pass for another one with a hyphen."""
    text = name.decode("latin-1")
    if "_" in text:
        return None
    key = text.upper().replace("-", "_")
    return key if key in ("CONTENT_LENGTH", "CONTENT_TYPE") else f"HTTP_{key}"


_cached_meta_key = lru_cache(maxsize=512)(_meta_key)

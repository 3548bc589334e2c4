"""Strict JSON parsing and rendering for the API. Spec: D1-D3, D16"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import IO, Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.renderers import JSONRenderer as LibraryRenderer
from rest_framework.request import Request

from gateway.lib import strict_json
from gateway.lib.errors import DomainError, Invalid


class InvalidJSON(Invalid):
    """The body is not JSON, or is ambiguous (such as a duplicate key)."""

    code = "invalid_json"


class BodyTooLarge(DomainError):
    """The body exceeds API_BODY_BYTES. Spec: D18"""

    code, message, status = "body_too_large", "The body is too large.", 413


class UnsupportedBody(DomainError):
    """The body is not JSON, or has a Content-Encoding. Spec: D8, D18"""

    code, message, status = "unsupported_media_type", "Send the body as application/json.", 415


class StrictJSONParser(BaseParser):
    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Raises: InvalidJSON, also for JSON that is no object."""
        try:
            document = strict_json.loads(stream.read())
        except strict_json.StrictJSONError as fault:
            raise InvalidJSON(f"The body cannot be read: {fault.reason}.") from fault
        if not isinstance(document, dict):
            raise InvalidJSON("The body must be a JSON object.")
        return document


class JSONRenderer(LibraryRenderer):
    charset = None


class OnlyJSON(BaseContentNegotiation):
    """Answers JSON whatever `Accept` asks for: a JSON response helps such a client more than a 406."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        """Raises: UnsupportedBody for another media type."""
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise UnsupportedBody
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or ""

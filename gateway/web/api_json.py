"""JSON in one reading only, and nothing but JSON. Spec: D1-D3, D16"""

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
    """The body is not JSON, or two readers could understand it differently."""

    code = "invalid_json"


class BodyTooLarge(DomainError):
    """More than the management API takes. Spec: D18"""

    code, message, status = "body_too_large", "The body is too large.", 413


class UnsupportedBody(DomainError):
    """Not JSON, or encoded for transport. Spec: D8, D18"""

    code, message, status = "unsupported_media_type", "Send the body as application/json.", 415


class StrictJSONParser(BaseParser):
    """An object, each key once."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The object in the body.

        Raises: InvalidJSON.
        """
        try:
            document = strict_json.loads(stream.read())
        except strict_json.StrictJSONError as fault:
            raise InvalidJSON(f"The body cannot be read: {fault.reason}.") from fault
        if not isinstance(document, dict):
            raise InvalidJSON("The body must be a JSON object.")
        return document


class JSONRenderer(LibraryRenderer):
    """Compact UTF-8."""

    charset = None


class OnlyJSON(BaseContentNegotiation):
    """Whatever a client says it accepts, it gets JSON: a 406 would help nobody."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        """The only one.

        Raises: UnsupportedBody for another media type.
        """
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise UnsupportedBody
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The only one."""
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or ""

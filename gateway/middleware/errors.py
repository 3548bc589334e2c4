"""One translation of errors that reach the top: pages show a page, machines get JSON."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse

from gateway.lib.errors import DomainError
from gateway.site.errors import error_response

log = structlog.get_logger(__name__)
RETRY_AFTER_S = "5"


class DomainErrorMiddleware:
    """A form view catches what it can show beside a field; the rest ends here, and so does a database that is away."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Django's hook."""
        if isinstance(exception, DomainError):
            answer = error_response(request, exception.status, code=exception.code, message=exception.message)
            for name, value in exception.headers.items():
                answer[name] = value
            return answer
        if isinstance(exception, OperationalError | InterfaceError):
            # Only the kind: the driver's text may quote a statement with its values.
            log.error("the database cannot be used", fault=type(exception).__name__)
            response = error_response(request, 503)
            response["Retry-After"] = RETRY_AFTER_S
            return response
        return None

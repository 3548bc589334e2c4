"""Turns errors that no view caught into answers: pages for people, JSON for machines."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse

from gateway.lib.errors import DomainError
from gateway.lib.translated import translated
from gateway.site.errors import error_response

log = structlog.get_logger(__name__)
RETRY_AFTER_S = "5"


# Form views catch the errors that they show beside a field.
class DomainErrorMiddleware:
    """Answers DomainError with its status, and database errors with 503."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, DomainError):
            answer = error_response(
                request, exception.status, code=exception.code, message=translated(exception.message)
            )
            for name, value in exception.headers.items():
                answer[name] = value
            return answer
        if isinstance(exception, OperationalError | InterfaceError):
            # Only the class: the driver's text may quote a statement with its values.
            log.error("the database cannot be used", fault=type(exception).__name__)
            response = error_response(request, 503)
            response["Retry-After"] = RETRY_AFTER_S
            return response
        return None

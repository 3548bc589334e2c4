"""Rate limits of pages and API by person or address, and their response headers. Spec: §8 · D19-D22"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from gateway.coordination import backend
from gateway.coordination.limit_headers import headers, refusal_text
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission
from gateway.lib.client_address import address_key
from gateway.lib.errors import DomainError

View = Callable[..., HttpResponseBase]


class RateLimited(DomainError):
    code, status = "rate_limited", 429

    def __init__(self, admission: Admission) -> None:
        super().__init__(refusal_text(admission.retry_after_s))
        self.admission = admission
        self.headers = headers(admission)


def count(request: HttpRequest, rule: Rule) -> Admission:
    """Count under the person's id or the anonymous address. Raises: RateLimited; CoordinationUnavailable."""
    return count_under(rule, key_of(request))


def count_under(rule: Rule, key: str) -> Admission:
    """Raises: RateLimited; CoordinationUnavailable."""
    admission = backend.current().hit(rule, key)
    if not admission.allowed:
        raise RateLimited(admission)
    return admission


def backstopped(view: View, *, by: Callable[[HttpRequest, Rule], Admission] = count) -> View:
    """Count each request, for views without a gate. Raises: RateLimited; CoordinationUnavailable. Spec: D22"""

    @wraps(view)
    def counted(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        by(request, settings.BACKSTOP)
        return view(request, *args, **kwargs)

    counted.is_backstopped = True  # type: ignore[attr-defined]
    return counted


def key_of(request: HttpRequest) -> str:
    """The person's id wherever they connect from, so that changing address gains nothing. Spec: D21"""
    if request.user.is_authenticated:
        return str(request.user.pk)
    return address_key(address_of(request))


def address_of(request: HttpRequest) -> str:
    # Set by the middleware, which trusts X-Forwarded-For of trusted proxies only. Spec: D21
    return str(getattr(request, "ip_address", "") or request.META.get("REMOTE_ADDR", ""))


def add_headers(response: HttpResponseBase, admission: Admission) -> None:
    """Headers that the response already has stay. Spec: D19"""
    for name, value in headers(admission).items():
        response.headers.setdefault(name, value)

"""Rate limits of pages by django-ratelimit: fixed windows in the shared cache. Spec: §8 · D22 · docs/decisions/0017"""

from __future__ import annotations

from functools import wraps
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver
from django_ratelimit.core import get_usage

from gateway.coordination import backend
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission
from gateway.web import rate
from gateway.web.rate import RateLimited, View


def page_limited(view: View) -> View:
    """Count each request under BACKSTOP. Raises: RateLimited; CoordinationUnavailable. Spec: D22"""
    return rate.backstopped(view, by=count)


def starting_sign_in(view: View) -> View:
    """Count anonymous requests by address. Raises: RateLimited; CoordinationUnavailable."""

    @wraps(view)
    def counted(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            # Each sign-in that begins stores a session row.
            count(request, settings.SIGN_IN_STARTS)
        return view(request, *args, **kwargs)

    return counted


def all_page_limited(patterns: list[URLPattern | URLResolver]) -> list[URLPattern | URLResolver]:
    for each in patterns:
        if isinstance(each, URLResolver):
            all_page_limited(each.url_patterns)
        else:
            each.callback = page_limited(each.callback)
    return patterns


def count(request: HttpRequest, rule: Rule) -> Admission:
    """Count in the cache, or with the exact limiter while there is no cache to count in. Spec: D23

    Raises: RateLimited; CoordinationUnavailable.
    """
    admission = _count_in_cache(request, rule)
    if admission is None:
        return rate.count(request, rule)
    if not admission.allowed:
        raise RateLimited(admission)
    return admission


def _count_in_cache(request: HttpRequest, rule: Rule) -> Admission | None:
    # A Redis that is known to be away costs no page another timeout.
    if backend.is_away():
        return None
    try:
        usage = get_usage(
            request, group=rule.name, key=_key, rate=(rule.limit, rule.window_s), method=get_usage.ALL, increment=True
        )
    except _cache_faults():
        return None
    # None: RATELIMIT_ENABLE is off. Negative: the cache lost the counter between two commands.
    if usage is None or usage["time_left"] < 0:
        return None
    allowed, left = not usage["should_limit"], max(0, rule.limit - usage["count"])
    return Admission(rule, allowed, left, 0 if allowed else max(1, usage["time_left"]), epochs=None)


def _key(group: str, request: HttpRequest) -> str:
    return rate.key_of(request)


def _cache_faults() -> tuple[type[Exception], ...]:
    """Exceptions of a cache that cannot be used."""
    # As in gateway.coordination.backend: redis takes 6 MB, so a process without it does not load it.
    if not settings.REDIS_URL:
        return (OSError,)
    from redis.exceptions import RedisError

    return (RedisError, OSError)

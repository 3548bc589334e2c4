"""GET /health (the process lives) and GET /ready (it can serve), for any Host. Spec: D157"""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse, JsonResponse

from gateway import draining, readiness
from gateway.lib import build_info, clock


async def health(request: HttpRequest) -> HttpResponse:
    """Uses neither database nor Redis. Spec: §4.1 · D30, D134"""
    if request.method not in ("GET", "HEAD"):
        return _wrong_method()
    body = {"status": "ok", "timestamp": clock.rfc3339(clock.now()), **build_info.current().labels()}
    return _answer(body, 200)


async def ready(request: HttpRequest) -> HttpResponse:
    """200 or 503 with `checks`. Degraded coordination is ready. Spec: D134, D156"""
    if request.method not in ("GET", "HEAD"):
        return _wrong_method()
    # Balancers learn of a stop within the delay, also while the database is silent.
    known = readiness.current().last_checks() if draining.is_draining() else None
    checks = known or await readiness.current().checks()
    status = "draining" if draining.is_draining() else "unavailable" if "failed" in checks.values() else "ready"
    return _answer({"status": status, "checks": checks}, 200 if status == "ready" else 503)


def _answer(body: Mapping[str, object], status: int) -> HttpResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})


def _wrong_method() -> HttpResponse:
    return JsonResponse({"error": "method_not_allowed"}, status=405, headers={"Allow": "GET"})

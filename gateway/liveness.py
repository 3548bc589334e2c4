"""GET /health (we are alive) and GET /ready (we can serve)."""

from __future__ import annotations

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

from gateway.coordination import registry
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib import clock


async def health(request: HttpRequest) -> HttpResponse:
    """Liveness only: it touches nothing. Spec: §4.1 · D30, D134"""
    if request.method not in ("GET", "HEAD"):
        return JsonResponse({"error": "method_not_allowed"}, status=405, headers={"Allow": "GET"})
    return JsonResponse({"status": "ok", "timestamp": clock.rfc3339(clock.now())})


def ready(request: HttpRequest) -> HttpResponse:
    """200 when the database is there and migrated and the coordination store answers, else 503 saying which is not.

    Spec: D134
    """
    parts = {"database": _database_ready(), "coordination": _coordination_ready()}
    good = all(state == "ok" for state in parts.values())
    return JsonResponse({"status": "ok" if good else "unavailable", "parts": parts}, status=200 if good else 503)


def _database_ready() -> str:
    try:
        executor = MigrationExecutor(connection)
        return "migrations pending" if executor.migration_plan(executor.loader.graph.leaf_nodes()) else "ok"
    except DatabaseError:
        return "unreachable"


def _coordination_ready() -> str:
    try:
        registry.current().ping()
    except CoordinationUnavailable:
        return "unreachable"
    return "ok"

"""The public status page: totals only, without names of vendors or organizations."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from gateway.lib import clock
from gateway.lib.translated import translated
from proxy.control_plane.health import summary
from proxy.control_plane.health.selectors import every_vendor_health


@require_safe
def status(request: HttpRequest) -> HttpResponse:
    """GET /status. Vendors that are never probed do not count.   Spec: §3"""
    entries = every_vendor_health()
    checked_at = summary.oldest_check(entries)
    context = {
        "page_title": gettext("Status"),
        "summary": translated(summary.summarize(entries)),
        "age": translated(summary.format_age(clock.now() - checked_at)) if checked_at else "",
        # Totals only: names would reveal which vendors are in use.
        "has_trouble": summary.has_trouble(entries),
        "is_collecting": summary.is_collecting(entries),
    }
    return render(request, "proxy/status.html", context)

"""Headers and sunset of the deprecated endpoint of one vendor. Spec: §4.15, §9 · D112"""

from __future__ import annotations

from django.conf import settings
from django.utils.http import http_date

from gateway.lib import clock
from proxy.views.responses import HttpError


def headers() -> dict[str, str]:
    """RFC 9745; RFC 8594 once the day of the sunset is set."""
    base = settings.BASE_URL
    found = {
        "Deprecation": settings.VENDOR_MCP_DEPRECATED,
        "Link": f'<{base}/v1/mcp>; rel="successor-version", <{base}/docs/migrate>; rel="deprecation"',
    }
    if settings.VENDOR_MCP_SUNSET is not None:
        found["Sunset"] = http_date(settings.VENDOR_MCP_SUNSET.timestamp())
    return found


def refuse_when_gone() -> None:
    """Raises: HttpError with 410 from the sunset on."""
    if settings.VENDOR_MCP_SUNSET is not None and clock.now() >= settings.VENDOR_MCP_SUNSET:
        raise HttpError(410, "gone", f"This endpoint is gone. Use {settings.BASE_URL}/v1/mcp.")

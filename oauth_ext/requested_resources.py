"""The resource addresses that a request names, checked against ours. Spec: RFC 8707 · protocol.md B.5"""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from gateway.catalog.models import VendorRow
from oauth_ext import resources


class ForeignResource(ValueError):
    """A resource is unknown here, or was not granted."""

    reason = "The resource is not an MCP address of this service, or was not granted."


def requested(sent: Sequence[str]) -> list[str]:
    """Returns canonical addresses, each once; the unified endpoint when none is sent. Raises: ForeignResource."""
    if len(sent) > resources.MAX_RESOURCES:
        raise ForeignResource
    named = [resources.canonical(settings.BASE_URL, each) for each in sent]
    found = [each for each in named if each is not None]
    vendors = {vendor for each in found if (vendor := resources.vendor_of(settings.BASE_URL, each)) is not None}
    # A vendor's address is ours only while the catalog has the vendor.
    if len(found) < len(named) or (vendors and VendorRow.objects.filter(slug__in=vendors).count() < len(vendors)):
        raise ForeignResource
    return list(dict.fromkeys(found)) or [resources.unified(settings.BASE_URL)]


def narrowed(granted: Sequence[str], sent: Sequence[str]) -> list[str]:
    """Returns all `granted` addresses when none is sent. Raises: ForeignResource."""
    if not sent:
        return list(granted)
    wanted = requested(sent)
    # The unified endpoint serves every vendor: its grant includes each vendor's own endpoint.
    if resources.unified(settings.BASE_URL) not in granted and not set(wanted) <= set(granted):
        raise ForeignResource
    return wanted

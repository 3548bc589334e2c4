"""Which of our addresses a request asks for, and how far a token may narrow them. Spec: RFC 8707 · protocol.md B.5"""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from gateway.catalog.models import VendorRow
from oauth_ext import resources


class ForeignResource(ValueError):
    """A resource is not ours, or more than was granted."""

    reason = "The resource is not an MCP address of this service, or was not granted."


def audiences(sent: Sequence[str]) -> list[str]:
    """The addresses in their one spelling, each once; the unified endpoint when none is named.

    Raises: ForeignResource.
    """
    if len(sent) > resources.MAX_RESOURCES:
        raise ForeignResource
    named = [resources.canonical(settings.BASE_URL, each) for each in sent]
    found = [each for each in named if each is not None]
    vendors = {vendor for each in found if (vendor := resources.vendor_of(settings.BASE_URL, each)) is not None}
    if len(found) < len(named) or (vendors and VendorRow.objects.filter(slug__in=vendors).count() < len(vendors)):
        raise ForeignResource
    return list(dict.fromkeys(found)) or [resources.unified(settings.BASE_URL)]


def narrowed(granted: Sequence[str], sent: Sequence[str]) -> list[str]:
    """What a token is for that names fewer addresses than were granted; all of them when it names none.

    The unified endpoint serves every vendor, so whoever was granted it was granted each vendor's own endpoint too.
    Raises: ForeignResource.
    """
    if not sent:
        return list(granted)
    wanted = audiences(sent)
    if resources.unified(settings.BASE_URL) not in granted and not set(wanted) <= set(granted):
        raise ForeignResource
    return wanted

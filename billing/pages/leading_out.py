"""Forms that lead to the payment provider: the origins that the content security policy lets them reach."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings

from billing.mode import has_provider

_STRIPE_API = "https://api.stripe.com"
_STRIPE_PAGES = ("https://checkout.stripe.com", "https://billing.stripe.com")


def provider_origins() -> tuple[str, ...]:
    """Origins of the provider's pages. A stand-in serves its pages where it serves its API."""
    if not has_provider():
        return ()
    api = origin_of(settings.STRIPE_API_BASE)
    return _STRIPE_PAGES if api == _STRIPE_API else (api,)


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"

"""The page between the gateway's form and a vendor's sign-in: it continues by itself."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.http import HttpResponse

from gateway.catalog.vendor import Vendor

TEMPLATE = "credentials/vendor_onward.html"


def context_of(vendor: Vendor, address: str) -> dict[str, Any]:
    return {"vendor": vendor, "onward": address, "onward_host": urlsplit(address).hostname}


def continuing(page: HttpResponse, address: str) -> HttpResponse:
    """The page, from which a browser goes on to the address: CSP form-action forbids redirecting a form there."""
    page["Refresh"] = f"0;url={address}"
    page["Cache-Control"] = "no-store"
    return page

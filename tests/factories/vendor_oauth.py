"""A vendor that people sign in to, and browsers that do."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpResponse
from django.test import Client as Browser

from tests.factories.catalog_text import load_catalog
from tests.vendors.servers import OAUTH_VENDOR as VENDOR
from tests.vendors.servers import OAuthVendor

# Lines of the catalog by which the vendor takes a key, too.
KEY_FIELDS = """
[[vendor.headers]]
name = "Authorization"
value = "Bearer {key}"
[[vendor.fields]]
name = "key"
label = "API key"
secret = true
required = true
"""


def load_oauth_vendor(url: str, more: str = "") -> None:
    """Put the vendor into the catalog; `more`: lines of its table `oauth`."""
    load_catalog(VENDOR.format(url=url, more=more), "test catalog")


def begin(browser: Browser, path: str, body: dict[str, Any] | None = None) -> str:
    """The address of the vendor's sign-in."""
    answer = browser.post(path, json.dumps(body or {}), content_type="application/json")
    assert answer.status_code == 201, answer.content
    url: str = answer.json()["authorizationUrl"]
    return url


def come_back(browser: Browser, address: str) -> HttpResponse:
    """The browser follows the vendor's redirect to the callback."""
    parts = urlsplit(address)
    return browser.get(f"{parts.path}?{parts.query}")  # type: ignore[return-value]


def connect_organization(browser: Browser, org_id: object, vendor: OAuthVendor) -> None:
    url = begin(browser, f"/api/orgs/{org_id}/vendor-connections/signin")
    answer = come_back(browser, vendor.sign_in(url))
    assert answer.status_code == 302, answer.content


def connect_person(browser: Browser, org_id: object, vendor: OAuthVendor) -> None:
    url = begin(browser, "/api/profile/vendor-connections/signin", {"org_id": str(org_id)})
    answer = come_back(browser, vendor.sign_in(url))
    assert answer.status_code == 302, answer.content

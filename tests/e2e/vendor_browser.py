"""A browser that connects a vendor with the buttons of the gateway's pages."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.vendors.servers import OAuthVendor

OWN_PAGE = "/profile/connections"
COOKIE = "gateway_session"


def shared_page(org_id: str, vendor: str = "signin") -> str:
    """Where an admin connects the organization."""
    return f"/orgs/{org_id}/vendors/{vendor}/settings"


def pressed(browser: httpx.Client, page: str, fields: Mapping[str, str] = MappingProxyType({})) -> httpx.Response:
    """The answer to the page's form."""
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', browser.get(page).text)
    assert found, page
    return browser.post(page, data={"csrfmiddlewaretoken": found.group(1), **fields})


def begun(browser: httpx.Client, page: str, fields: Mapping[str, str] = MappingProxyType({})) -> str:
    """The address of the vendor's sign-in, after Connect was pressed."""
    answer = pressed(browser, page, fields)
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.headers["Refresh"].removeprefix("0;url="))


def connected(
    browser: httpx.Client, page: str, vendor: OAuthVendor, fields: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Connect was pressed, and the vendor has agreed; the code that it sent."""
    back = vendor.sign_in(begun(browser, page, fields))
    answer = browser.get(back)
    assert answer.status_code == 302, answer.text
    return parse_qs(urlsplit(back).query)["code"][0]

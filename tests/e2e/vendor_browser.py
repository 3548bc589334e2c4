"""A browser that connects a vendor with the buttons of the gateway's pages."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.clients.forms import Page
from tests.vendors.processes import PLAIN_HTTP
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


def agreed(address: str) -> str:
    """Where oidc-provider sends the browser back to, after a person signed in and agreed on its pages."""
    with httpx.Client(**PLAIN_HTTP, timeout=10.0) as there:
        answer = there.get(address, follow_redirects=True)
        for _ in range(2):
            form, button = Page(answer.text).forms[0], Page(answer.text).forms[0].buttons[0]
            target = answer.url.join(form.action)
            answer = there.post(target, data=form.submitted(button, {"login": "nina", "password": "any"}))
            while answer.next_request is not None and answer.next_request.url.host == "127.0.0.1":
                if answer.next_request.url.port != target.port:
                    return str(answer.next_request.url)
                answer = there.send(answer.next_request)
    raise AssertionError(answer.text)


def connected(
    browser: httpx.Client, page: str, vendor: OAuthVendor, fields: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Connect was pressed, and the vendor has agreed; the code that it sent."""
    back = vendor.sign_in(begun(browser, page, fields))
    answer = browser.get(back)
    assert answer.status_code == 302, answer.text
    return parse_qs(urlsplit(back).query)["code"][0]

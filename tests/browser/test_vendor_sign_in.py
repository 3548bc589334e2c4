"""Vendors that want a sign-in are connected by pressing Connect, and their tools are called with the connection.

Three authorization servers that others wrote: of the Python SDK, of the TypeScript SDK, and oidc-provider, which has
pages of its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from gateway.supervisor.secret_store import load_secrets
from tests.browser.conftest import Visitor, visitors
from tests.browser.looking import SCREENS, faults_in
from tests.clients import programs
from tests.e2e.started import ROOT, Started, started
from tests.vendors import servers
from tests.vendors.processes import RunningServer

CATALOG = """
[[vendor]]
slug = "{slug}"
name = "{name}"
url = "{url}"
docs_url = "https://vendor.example/docs"
timeout_seconds = 10
[vendor.oauth]
"""
# It takes a key, too.
KEY = """
[[vendor.headers]]
name = "Authorization"
value = "Bearer {key}"
[[vendor.fields]]
name = "key"
label = "API key"
secret = true
required = true
help = "Create it on the page of your account."
"""
NAMES = {"python": "Python SDK", "typescript": "TypeScript SDK", "provider": "Oidc Provider"}
# By vendor: a tool, and what it says to a caller with the scopes that the vendor grants.
TOOLS = {
    "python": ("python_scopes", "^read$"),
    "typescript": ("typescript_whoami", "^nobody: mcp:tools$"),
    "provider": ("provider_whoami", "^{account}: .*read write"),
}


@pytest.fixture(scope="module")
def vendors() -> Iterator[dict[str, RunningServer]]:
    """The running vendors by slug."""
    if programs.newer_node() is None:
        programs.skip_without_newer_node()
    with contextlib.ExitStack() as stack:
        yield {
            "python": stack.enter_context(servers.oauth_vendor_server()).server,
            "typescript": stack.enter_context(servers.node_oauth_server("sdk_oauth_server.mjs")),
            "provider": stack.enter_context(servers.node_oauth_server("oidc_server.mjs")),
        }


@pytest.fixture(scope="module")
def with_vendors(tmp_path_factory: pytest.TempPathFactory, vendors: dict[str, RunningServer]) -> Iterator[Started]:
    """A service of these tests' own, with the vendors in its catalog."""
    folder = tmp_path_factory.mktemp("sign-in")
    file = folder / "vendors.toml"
    entries = (CATALOG.format(slug=slug, name=NAMES[slug], url=each.mcp_url) for slug, each in vendors.items())
    file.write_text("".join(entries).replace("[vendor.oauth]", f"[vendor.oauth]{KEY}", 1))
    with started(folder / "service") as service:
        service.wait_ready()
        environment = {**service.variables, **load_secrets(service.var, {}, has_database=True)}
        subprocess.run(
            [sys.executable, "manage.py", "load_vendors", str(file)],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "GATEWAY_MODE": "embedded", **environment},
            check=True,
            timeout=120,
        )
        yield service


@pytest.fixture
def visit(with_vendors: Started, chromium: Browser) -> Iterator[Callable[..., Visitor]]:
    with visitors(with_vendors, chromium) as make:

        def visitor() -> Visitor:
            made = make()
            # oidc-provider's own pages ask for a font, which a test fetches from nowhere.
            made.page.context.route(
                "https://fonts.googleapis.com/**", lambda route: route.fulfill(content_type="text/css")
            )
            return made

        yield visitor


def sign_in_at(page: Page, vendor: str, account: str) -> None:
    """The pages of the vendor's own server; those of the SDKs ask nothing, and send the browser back at once."""
    if vendor != "provider":
        return
    page.get_by_placeholder("Enter any login").fill(account)
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def said(someone: Visitor, bearer: str, vendor: str) -> str:
    text: str = someone.call_tool(bearer, TOOLS[vendor][0]).json()["result"]["content"][0]["text"]
    return text


@pytest.mark.parametrize("vendor", NAMES)
def test_an_organization_connects_and_calls(visit: Callable[..., Visitor], vendor: str) -> None:
    someone = visit()
    org = someone.found_organization()
    page = someone.open(f"{org}/vendors/{vendor}/settings")
    page.get_by_role("button", name=f"Connect {NAMES[vendor]}").click()
    sign_in_at(page, vendor, "team")
    expect(page).to_have_url(re.compile(f"{org}/vendors/{vendor}/settings$"))
    expect(page.get_by_text(f"{NAMES[vendor]} is connected.")).to_be_visible()
    expect(page.get_by_role("button", name="Sign in again")).to_be_visible()
    assert re.search(TOOLS[vendor][1].format(account="team"), said(someone, someone.agent_key(org), vendor))


@pytest.mark.parametrize("vendor", NAMES)
def test_a_person_connects_and_disconnects(visit: Callable[..., Visitor], vendor: str) -> None:
    someone = visit()
    someone.found_organization()
    page = someone.open(f"/profile/connections?vendor={vendor}")
    page.get_by_role("button", name=f"Connect {NAMES[vendor]}").click()
    sign_in_at(page, vendor, "nina")
    expect(page).to_have_url(re.compile("/profile/connections$"))
    expect(page.get_by_text(f"{NAMES[vendor]} is connected.")).to_be_visible()
    page.get_by_role("button", name="Disconnect").click()
    expect(page.get_by_text("Disconnected.")).to_be_visible()
    expect(page.get_by_role("button", name=f"Connect {NAMES[vendor]}")).to_be_visible()


def test_a_page_with_both_ways_takes_a_key_and_is_accessible(visit: Callable[..., Visitor]) -> None:
    someone = visit()
    org = someone.found_organization()
    page = someone.open(f"{org}/vendors/python/settings")
    assert faults_in(page, SCREENS) == []
    page.get_by_label("API key").fill("wrong")
    page.get_by_role("button", name="Use this key").click()
    expect(page.get_by_text("rejected these credentials")).to_be_visible()
    page.get_by_role("button", name="Connect Python SDK").click()
    expect(page.get_by_text("Python SDK is connected.")).to_be_visible()
    expect(page.get_by_text("A key takes the place of the organization’s connection")).to_be_visible()
    assert faults_in(page, SCREENS) == []


def test_a_sign_in_of_another_browser_ends_in_words(visit: Callable[..., Visitor]) -> None:
    someone = visit()
    someone.sign_in()
    page = someone.open("/vendor-oauth/callback?state=unknown&code=x")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("main")).to_contain_text("sign-in")

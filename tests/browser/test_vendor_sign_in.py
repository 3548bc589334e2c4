"""A vendor that wants a sign-in is connected by pressing Connect, and its tools are called with the connection."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from gateway.supervisor.secret_store import load_secrets
from tests.browser.conftest import Visitor, visitors
from tests.e2e.started import ROOT, Started, started
from tests.factories.vendor_oauth import VENDOR
from tests.vendors.servers import OAuthVendor

pytest_plugins = ("tests.vendors.fixtures",)


@pytest.fixture
def with_vendor(tmp_path: Path, oauth_vendor: OAuthVendor) -> Iterator[Started]:
    """A service of the test's own, with the vendor in its catalog."""
    file = tmp_path / "vendors.toml"
    file.write_text(VENDOR.format(url=oauth_vendor.mcp_url, more=""))
    with started(tmp_path / "service") as service:
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
def visit(with_vendor: Started, chromium: Browser) -> Iterator[Callable[..., Visitor]]:
    with visitors(with_vendor, chromium) as make:
        yield make


def test_an_organization_connects_and_calls(visit: Callable[..., Visitor]) -> None:
    someone = visit()
    org = someone.found_organization()
    page = someone.open(f"{org}/vendors/signin/settings")
    page.get_by_role("button", name="Connect Sign In").click()
    # The vendor's server asks nothing: it sends the browser back at once.
    expect(page).to_have_url(re.compile(f"{org}/vendors/signin/settings$"))
    expect(page.get_by_text("Sign In is connected.")).to_be_visible()
    expect(page.get_by_role("button", name="Sign in again")).to_be_visible()
    answer = someone.call_tool(someone.agent_key(org), "signin_scopes")
    assert answer.json()["result"]["content"][0]["text"] == "read"


def test_a_person_connects_and_disconnects(visit: Callable[..., Visitor]) -> None:
    someone = visit()
    someone.found_organization()
    page = someone.open("/profile/connections")
    page.get_by_role("button", name="Connect Sign In").click()
    expect(page).to_have_url(re.compile("/profile/connections$"))
    expect(page.get_by_text("Sign In is connected.")).to_be_visible()
    page.get_by_role("button", name="Disconnect").click()
    expect(page.get_by_text("Disconnected.")).to_be_visible()
    expect(page.get_by_role("button", name="Connect Sign In")).to_be_visible()


def test_a_sign_in_of_another_browser_ends_in_words(visit: Callable[..., Visitor]) -> None:
    someone = visit()
    someone.sign_in()
    page = someone.open("/vendor-oauth/callback?state=unknown&code=x")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("main")).to_contain_text("sign-in")

"""From nothing to the first successful call: how many clicks it takes, through the real pages.

A click is one on a page: typing, pasting and what a client does by itself are none. The call is made with what the
person got: an access token of the client's own authorization, or an agent key.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from proxy.pages.client_guides import guide
from tests.browser.conftest import PATIENCE_S, Visitor, new_email
from tests.browser.looking import LIGHT_NARROW, SCREENS, faults_in
from tests.browser.test_app_pages import LOOPBACK, App

NewVisitor = Callable[..., Visitor]
WITH_SIGN_IN, WITH_KEY, INVITED = 7, 8, 6
SAMPLE = "Try Acme RMM with sample data"


class Clicks:
    """Counts what a person clicks, and notes it for the message of a failure."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.names: list[str] = []

    def click(self, what: Locator, name: str) -> None:
        self.names.append(name)
        what.click()

    def button(self, name: str, **more: Any) -> None:
        self.click(self.page.get_by_role("button", name=name, **more).first, name)

    def link(self, name: str, **more: Any) -> None:
        self.click(self.page.get_by_role("link", name=name, **more).first, name)

    def sign_in(self, email: str) -> None:
        """Through the provider's form."""
        self.link("Continue with")
        self.page.get_by_label("E-mail address").fill(email)
        self.button("Sign in")

    def at_most(self, number: int) -> None:
        assert len(self.names) <= number, self.names


def first_call(someone: Visitor, bearer: str) -> dict[str, Any]:
    """The result of one tool call over MCP."""
    answer = someone.call_tool(bearer)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert not found["result"].get("isError"), found
    return found


def new_organization(someone: Visitor, name: str) -> tuple[Clicks, Page]:
    """A new person with an organization and its sample vendor, by clicks."""
    page = someone.open("/signin")
    clicks = Clicks(page)
    clicks.sign_in(new_email())
    page.get_by_label("Organization name").fill(name)
    clicks.button("Create organization")
    page.wait_for_url(f"{someone.base}/orgs/*")
    clicks.button(SAMPLE)
    expect(page.get_by_text("Acme RMM is connected with sample data.")).to_be_visible()
    return clicks, page


def allow(someone: Visitor, clicks: Clicks) -> str:
    """The client that was set up opens the consent page; the token that it gets."""
    app = App(someone, LOOPBACK, name="Claude Code")
    app.ask()
    clicks.button("Allow")
    token: str = app.redeem(app.received()["code"])["access_token"]
    return token


def copied(someone: Visitor, clicks: Clicks) -> str:
    """The snippet of Home, as the clipboard has it."""
    page = someone.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=someone.base)
    clicks.button("Copy Claude Code")
    found: str = page.evaluate("navigator.clipboard.readText()")
    assert found == f"claude mcp add --transport http gateway {someone.ready['mcp_url']}"
    return found


def test_a_new_person_signs_a_client_in(visitor: NewVisitor) -> None:
    someone = visitor()
    clicks, page = new_organization(someone, "Nordwind")
    org = page.url.removeprefix(someone.base)
    copied(someone, clicks)
    first_call(someone, allow(someone, clicks))
    clicks.at_most(WITH_SIGN_IN)
    someone.open(org)
    expect(page.get_by_role("heading", name="First steps")).to_have_count(0)
    expect(page.get_by_text("1 call, 0 errors")).to_be_visible()


def test_a_new_person_gives_an_agent_a_key(visitor: NewVisitor) -> None:
    someone = visitor()
    clicks, page = new_organization(someone, "Ostwind")
    clicks.link("An agent with its own key")
    page.get_by_label("Name").fill("Triage bot")
    clicks.button("Create agent")
    key = page.get_by_label("Agent key", exact=True).input_value()
    clicks.button("Copy the agent key")
    first_call(someone, key)
    clicks.at_most(WITH_KEY)


def test_an_invited_member_signs_a_client_in(visitor: NewVisitor) -> None:
    owner, someone = visitor(), visitor()
    org = owner.found_organization("Südwind")
    owner.has_acme(org)
    opened = {"defaultServerAccess": "all"}
    assert owner.page.context.request.patch(f"{owner.base}/api{org}/settings", data=opened).ok
    page = someone.open(owner.invitation(org))
    clicks = Clicks(page)
    clicks.link("Sign in to join")
    clicks.sign_in(new_email())
    clicks.button("Join Südwind")
    page.wait_for_url(f"{someone.base}/orgs/*")
    copied(someone, clicks)
    first_call(someone, allow(someone, clicks))
    clicks.at_most(INVITED)
    someone.open(org)
    expect(page.get_by_text("1 call, 0 errors")).to_be_visible()


@pytest.mark.parametrize("slug", ["curl-mcp", "curl-rest", "python-sdk"])
def test_what_is_said_to_be_run_runs_as_it_stands(visitor: NewVisitor, slug: str) -> None:
    """With the credentials in the variables that the guide names."""
    ready = visitor().ready
    chosen = guide(slug)
    assert chosen is not None
    assert chosen.checked == "run"
    code = chosen.filled(ready["base_url"], "acme").code
    names = {"GATEWAY_KEY": "agent_key", "GATEWAY_CLIENT_ID": "client_id", "GATEWAY_CLIENT_SECRET": "client_secret"}
    given = {**os.environ, **{name: ready[key] for name, key in names.items()}}
    command = [sys.executable, "-c", code] if slug == "python-sdk" else ["bash", "-c", code]
    ran = subprocess.run(command, env=given, capture_output=True, text=True, timeout=PATIENCE_S * 3, check=False)
    assert (ran.returncode, "list" in ran.stdout) == (0, True), ran.stderr


@pytest.mark.parametrize("scripts", [True, False])
def test_the_first_steps_are_hidden_and_shown(visitor: NewVisitor, scripts: bool) -> None:
    someone = visitor(java_script_enabled=scripts)
    page = someone.open(someone.found_organization("Westwind"))
    page.get_by_role("button", name="Hide the first steps").click()
    expect(page.get_by_role("heading", name="First steps")).to_have_count(0)
    page.get_by_role("button", name="Show the first steps").click()
    expect(page.get_by_role("heading", name="First steps")).to_be_visible()


def test_the_pages_are_well_made(visitor: NewVisitor, tmp_path: Any) -> None:
    someone = visitor()
    page = someone.open(someone.found_organization("Nordwind"))
    views = (*SCREENS, LIGHT_NARROW)
    found = faults_in(page, views, pictures=tmp_path / "home-new")
    org = someone.sign_in_owner()
    for path in (org, f"{org}/setup?client=device-flow", f"{org}/setup?client=chatgpt", "/v1/mcp"):
        someone.open(path)
        found += faults_in(page, views, pictures=tmp_path / path.rpartition("/")[2])
    assert not found, "\n".join(found)

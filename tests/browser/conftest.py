"""The whole service as `make run` starts it, and a Chromium whose pages must stay free of errors."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Response, expect, sync_playwright

from scripts.test import find_chromium
from tests.browser.layout import COLLECT_SHIFTS
from tests.e2e.started import Started, started
from tests.vendors.browser import walk_sign_in

# Runs before any script of the page: a blocked resource is an event, not always a console line.
COLLECT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`CSP ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""
PATIENCE_S = 20


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of whole sets of pages are the longest: they come first, so that no worker ends alone with one."""
    items.sort(key=lambda item: not item.name.startswith("test_every_page"))


def pytest_runtest_setup() -> None:
    """After the Unix time TEST_UNTIL no test begins: those that are left are skipped, and are counted as such."""
    until = float(os.environ.get("TEST_UNTIL") or "inf")
    if time.time() > until:
        pytest.skip("the time until TEST_UNTIL is up")


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """The service with its demo vendor and its demo identity provider."""
    with started(tmp_path_factory.mktemp("browser")) as start:
        start.wait_ready()
        yield start


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The system's Chromium."""
    path = find_chromium()
    assert path is not None, "Chromium is needed: apt-get install chromium, or name it: CHROMIUM=..."
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def wait_until(page: Page, happened: Callable[[], object]) -> None:
    """The events of the page run until `happened()`, or for 60 s."""
    for _ in range(1_200):
        if happened():
            return
        page.wait_for_timeout(50)


def stop_clock(page: Page) -> None:
    """Timers of the page fire when the test moves the clock, and at no other time."""
    page.clock.install()
    # A moment that has passed when the call arrives is refused: an hour is more than any machine needs.
    page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))


def new_email() -> str:
    """An address that nobody has signed in with."""
    return f"{uuid.uuid4().hex[:10]}@demo.example"


class Watch:
    """Everything that went wrong in a page. Refusals that a test asked for (a 422 answer) are no fault of the page."""

    def __init__(self, page: Page) -> None:
        self.problems: list[str] = []
        self._refused: set[str] = set()
        page.on("response", self._note_answer)
        page.on("console", self._note_line)
        page.on("pageerror", lambda error: self.problems.append(f"{page.url}: {error}"))

    def _note_answer(self, response: Response) -> None:
        if response.status >= 400 and response.request.is_navigation_request():
            self._refused.add(response.url)
        elif response.status >= 400:
            self.problems.append(f"{response.status} {response.url}")

    def _note_line(self, line: ConsoleMessage) -> None:
        is_refusal = line.text.startswith("Failed to load resource") and line.location["url"] in self._refused
        if line.type in {"error", "warning"} and not is_refusal:
            self.problems.append(f"{line.location['url']}: {line.text}")


class Visitor:
    """A person with a browser of their own; `page` is where they are."""

    def __init__(self, page: Page, watch: Watch, service: Started) -> None:
        self.page = page
        self.watch = watch
        self.ready = service.ready()
        self.base: str = self.ready["base_url"]

    def open(self, path: str) -> Page:
        """The page at a path of the service."""
        self.page.goto(f"{self.base}{path}")
        return self.page

    def sign_in_by_form(self, email: str = "", name: str = "Nina Novak") -> Page:
        """Signed in as a person that nobody has seen, or as `email`, through the pages."""
        self.open("/signin")
        self.page.get_by_role("link", name="Continue with").click()
        self.page.get_by_label("E-mail address").fill(email or new_email())
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(f"{self.base}/**")
        return self.page

    def found_organization_by_form(self, name: str) -> str:
        """A new person with a new organization, through the pages; its path."""
        self.sign_in_by_form()
        self.page.get_by_label("Organization name").fill(name)
        self.page.get_by_role("button", name="Create organization").click()
        self.page.wait_for_url(f"{self.base}/orgs/*")
        return self.page.url.removeprefix(self.base)

    # The state that a test starts from, made without a page. The pages that make it have tests of their own.

    def sign_in(self, email: str = "", name: str = "Nina Novak") -> None:
        """Signed in as a person that nobody has seen, or as `email`."""
        with httpx.Client(base_url=self.base, timeout=PATIENCE_S, trust_env=False) as client:
            walk_sign_in(client, "/oidc/authenticate/?next=/profile", email or new_email(), name=name)
            cookies = [(each.name, each.value or "") for each in client.cookies.jar]
        self.page.context.add_cookies([{"name": name, "value": value, "url": self.base} for name, value in cookies])

    def sign_in_owner(self) -> str:
        """Signed in as the demo's owner; the path of the demo organization."""
        self.sign_in(self.ready["owner_email"], "Demo Owner")
        return f"/orgs/{self.ready['org_id']}"

    def post(self, path: str, **content: Any) -> dict[str, Any]:
        """The service's answer to a script of the person's, as an object."""
        answer = self.page.context.request.post(f"{self.base}{path}", data=content, timeout=PATIENCE_S * 1000)
        assert answer.ok, (path, answer.status, answer.text())
        found: dict[str, Any] = answer.json()
        return found

    def found_organization(self, name: str = "Nordwind") -> str:
        """A new person with a new organization; its path."""
        self.sign_in()
        return f"/orgs/{self.post('/api/orgs', name=name)['id']}"

    def has_acme(self, org: str) -> None:
        """The organization has credentials for the demo vendor."""
        self.post(f"/api{org}/credentials/acme", apiKey="demo-browser-tests-0001")

    def agent_key(self, org: str, name: str = "Triage bot") -> str:
        """A new service client's agent key."""
        created = self.post(f"/api{org}/service-clients", name=name)
        key: str = self.post(f"/api{org}/service-clients/{created['id']}/agent-key")["agent_key"]
        return key

    def invitation(self, org: str) -> str:
        """A new invitation's link, without the service's address."""
        link: str = self.post(f"/api{org}/invitations")["inviteUrl"]
        return link.removeprefix(self.base)

    def connect_acme(self, org: str, key: str = "demo-browser-tests-0001") -> None:
        """The demo vendor's form, sent with `key`."""
        self.open(f"{org}/vendors/acme/settings")
        self.page.get_by_label("API key").fill(key)
        self.page.get_by_role("button", name="Connect").click()
        self.page.wait_for_load_state()

    def create_agent_by_form(self, org: str, name: str) -> str:
        """The form for a new agent, sent; its key. The page is the one that shows it."""
        self.open(f"{org}/agents/new")
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_role("button", name="Create agent").click()
        return self.page.get_by_label("Agent key", exact=True).input_value()

    def call_tool(self, key: str, tool: str = "acme_whoami") -> httpx.Response:
        """One call with an agent key, from outside the browser."""
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        body["params"] = {"name": tool, "arguments": {}}
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream"}
        return httpx.post(self.ready["mcp_url"], json=body, headers=headers, timeout=60)


@pytest.fixture
def visitor(service: Started, chromium: Browser) -> Iterator[Callable[..., Visitor]]:
    """Makes visitors. When the test ends, none of their pages may have reported a fault."""
    with visitors(service, chromium) as make:
        yield make


@contextmanager
def visitors(service: Started, chromium: Browser) -> Iterator[Callable[..., Visitor]]:
    """The same of any service, as a block."""
    made: list[Visitor] = []

    def make(**options: Any) -> Visitor:
        given: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}, "accept_downloads": True, **options}
        context = chromium.new_context(**given)
        context.add_init_script(COLLECT_VIOLATIONS + COLLECT_SHIFTS)
        context.set_default_timeout(60_000)
        page = context.new_page()
        made.append(Visitor(page, Watch(page), service))
        return made[-1]

    yield make
    problems = [problem for each in made for problem in each.watch.problems]
    for each in made:
        each.page.context.close()
    assert not problems, problems

"""A person and their browser: signs in at the demo identity provider, reads pages, presses buttons, keeps cookies.

    python -m tests.clients.browser ACTION URL

ACTION is `allow` or `cancel` for an authorization address: prints where the person was sent back to. `signed-in` is
`allow` by a person who had signed in before. `open` also goes to where the person was sent, as a browser does; client
programs get it as their browser. `approve` and `deny` are for a device's verification
address. BROWSER_EMAIL says who the person is; what went wrong is appended to BROWSER_LOG.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.clients.forms import Page, policy_allows_form

MAX_HOPS = 15
TIMEOUT_S = 15.0
DELIVERY_DEADLINE_S = 10.0
SIGNED_IN_PAGE = "/profile"
SIGN_IN_PATH, SIGN_IN_START = "/signin", "/oidc/authenticate/"
# Labels of the buttons of our pages.
ALLOW, CANCEL, APPROVE, DENY = "Allow", "Cancel", "Approve", "Deny"


class BrowserError(AssertionError):
    """A person would be stuck here; the message says where, with what the page says."""


class Browser:
    """A signed-out browser of the person with the address `email`, for the gateway at `origin`."""

    def __init__(self, origin: str, email: str, transport: httpx.BaseTransport | None = None) -> None:
        self.origin, self.email = origin, email
        self._provider: str | None = None
        self.http = httpx.Client(transport=transport, trust_env=False, timeout=TIMEOUT_S, follow_redirects=False)

    def __enter__(self) -> Browser:
        """Closed at the end of the block."""
        return self

    def __exit__(self, *exception: object) -> None:
        self.http.close()

    def open(self, url: str) -> httpx.Response:
        """The page that the address leads to, signed in if need be, or the redirect that leaves the gateway."""
        return self._settled(self.http.get(httpx.URL(self.origin).join(url)))

    def press(self, page: httpx.Response, label: str, **typed: str) -> httpx.Response:
        """The page after pressing the button that says `label`, with fields filled in."""
        return self._settled(self._submit(page, label, typed), pressed_on=page)

    def _submit(self, page: httpx.Response, label: str, typed: dict[str, str]) -> httpx.Response:
        content = Page(page.text)
        found = content.find(label)
        if found is None:
            raise BrowserError(f"no button says {label!r} but {content.labels()} on {described(page)}")
        form, button = found
        target = page.url.join(form.action) if form.action else page.url
        if not policy_allows_form(policy_of(page), str(page.url), str(target)):
            raise BrowserError(f"the policy of {described(page)} forbids its own form")
        fields = form.submitted(button, typed)
        if form.method == "post":
            # A browser's headers about the page of a form; cross-site checks read them.
            headers = {"Origin": origin_of(page.url), "Referer": str(page.url), "Sec-Fetch-Site": "same-origin"}
            return self.http.post(target, data=fields, headers=headers)
        return self.http.get(target, params=fields)

    def _settled(self, response: httpx.Response, pressed_on: httpx.Response | None = None) -> httpx.Response:
        for _ in range(MAX_HOPS):
            if response.is_redirect:
                target = response.url.join(response.headers["Location"])
                if pressed_on is not None and not policy_allows_form(
                    policy_of(pressed_on), str(pressed_on.url), str(target)
                ):
                    raise BrowserError(
                        f"the policy of {described(pressed_on)} forbids the way to {origin_of(target)}: "
                        f"{policy_of(pressed_on)}"
                    )
                if not self._is_ours(response.url, target):
                    return response
                response = self.http.get(target)
            elif origin_of(response.url) == self._provider:
                pressed_on = response
                response = self._submit(response, "Sign in", {"sub": self.email})
            elif response.url.path == SIGN_IN_PATH:
                response, pressed_on = self.http.get(response.url.join(self._start_link(response))), None
            else:
                return response
        raise BrowserError(f"more than {MAX_HOPS} steps, the last at {described(response)}")

    def _is_ours(self, source: httpx.URL, target: httpx.URL) -> bool:
        if origin_of(source) == self.origin and source.path == SIGN_IN_START:
            self._provider = origin_of(target)
        return origin_of(target) in {self.origin, self._provider}

    @staticmethod
    def _start_link(page: httpx.Response) -> str:
        links = [link for link in Page(page.text).links if urlsplit(link).path == SIGN_IN_START]
        if "failed" in page.url.params or not links:
            raise BrowserError(f"nobody can sign in on {described(page)}")
        return links[0]


def authorize(browser: Browser, url: str, button: str = ALLOW) -> str:
    """Where the person is sent back to, after pressing `button` on the consent page (or at once, if asked before)."""
    answer = browser.open(url)
    if not answer.is_redirect:
        if answer.status_code != 200:
            raise BrowserError(f"no consent page but {described(answer)}")
        answer = browser.press(answer, button)
    if not answer.is_redirect:
        raise BrowserError(f"nobody is sent back from {described(answer)}")
    location: str = answer.headers["Location"]
    if not comes_back(location, url):
        raise BrowserError(f"sent to {location}, which is not the redirect_uri of the request")
    return location


def decide_device(browser: Browser, url: str, button: str = APPROVE) -> httpx.Response:
    """The last page of a device's verification: the code is in the address, the person confirms and decides."""
    page = browser.open(url)
    for _ in range(3):
        labels = Page(page.text).labels()
        if button in labels:
            return browser.press(page, button)
        if "Continue" not in labels:
            break
        page = browser.press(page, "Continue")
    raise BrowserError(f"no button says {button!r} on {described(page)}")


def comes_back(location: str, url: str) -> bool:
    """Whether an address is the redirect_uri of an authorization request, with parameters added."""
    (wanted,) = parse_qs(urlsplit(url).query).get("redirect_uri", [""])
    return location.startswith((f"{wanted}?", f"{wanted}&"))


def deliver(location: str) -> None:
    """The program that waits at `location` has been told; it may start to listen a moment after its browser."""
    deadline = time.monotonic() + DELIVERY_DEADLINE_S
    while True:
        try:
            answer = httpx.get(location, trust_env=False, timeout=TIMEOUT_S)
        except httpx.ConnectError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            if answer.status_code >= 400:
                raise BrowserError(f"the program answered {answer.status_code}: {answer.text[:500]}")
            return


def policy_of(page: httpx.Response) -> str:
    """Its Content-Security-Policy."""
    policy: str = page.headers.get("Content-Security-Policy", "")
    return policy


def origin_of(url: httpx.URL) -> str:
    """Scheme, host and port."""
    return f"{url.scheme}://{url.netloc.decode('ascii')}"


def described(page: httpx.Response) -> str:
    """Status and address without the query, and the beginning of what a person reads."""
    text = " ".join(Page(page.text).words)[:600]
    return f"{page.status_code} {origin_of(page.url)}{page.url.path}: {text}"


def main(action: str, url: str) -> None:
    """See the module's text."""
    parts = urlsplit(url)
    with Browser(f"{parts.scheme}://{parts.netloc}", os.environ["BROWSER_EMAIL"]) as browser:
        if action in {"approve", "deny"}:
            page = decide_device(browser, url, APPROVE if action == "approve" else DENY)
            print(page.status_code)  # noqa: T201 - the answer
            return
        if action == "signed-in":
            browser.open(SIGNED_IN_PAGE)
        location = authorize(browser, url, CANCEL if action == "cancel" else ALLOW)
    if action == "open":
        deliver(location)
    print(location)  # noqa: T201 - the answer


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    except Exception:
        # A browser's own output goes nowhere when a client program starts it.
        if os.environ.get("BROWSER_LOG"):
            with Path(os.environ["BROWSER_LOG"]).open("a") as log:
                traceback.print_exc(file=log)
        raise

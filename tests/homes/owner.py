"""The first owner of an installation: signs in at the provider, connects the vendor, makes an agent."""

from __future__ import annotations

from typing import Any

import httpx

from tests.clients.browser import Browser, BrowserError, described, origin_of
from tests.clients.forms import Page

# Buttons of oidc-provider's own pages.
SIGN_IN, CONSENT = "Sign-in", "Continue"
MAX_PAGES = 4


class Owner(Browser):
    """A browser whose identity provider is oidc-provider."""

    def sign_in(self) -> httpx.Response:
        """The page of the gateway after the provider's pages. Raises: BrowserError."""
        page = self.open("/signin")
        for _ in range(MAX_PAGES):
            if origin_of(page.url) == self.origin:
                return page
            labels = Page(page.text).labels()
            if SIGN_IN in labels:
                page = self.press(page, SIGN_IN, login=self.email, password="anything")
            elif CONSENT in labels:
                page = self.press(page, CONSENT)
            else:
                break
        raise BrowserError(f"nobody gets further than {described(page)}")

    def _settled(self, response: httpx.Response, pressed_on: httpx.Response | None = None) -> httpx.Response:
        for _ in range(15):
            if response.is_redirect:
                response = self.http.get(response.url.join(response.headers["Location"]))
            elif origin_of(response.url) == self.origin and response.url.path == "/signin":
                response = self.http.get(response.url.join(self._start_link(response)))
            else:
                return response
        raise BrowserError(f"redirects without an end, the last to {described(response)}")

    def api(self, method: str, path: str, **body: Any) -> Any:
        """The answer of the API to the signed-in person."""
        answer = self.http.request(method, f"{self.origin}/api{path}", json=body or None)
        if answer.status_code >= 300:
            raise BrowserError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json()

    def new_agent(self, vendor: str) -> str:
        """The key of an agent of the person's organization, which is connected to the vendor."""
        organizations = self.api("GET", "/orgs")
        org_id = organizations[0]["id"]
        self.api("POST", f"/orgs/{org_id}/credentials/{vendor}")
        client = self.api("POST", f"/orgs/{org_id}/service-clients", name="First agent")
        found: str = self.api("POST", f"/orgs/{org_id}/service-clients/{client['id']}/agent-key")["agent_key"]
        return found

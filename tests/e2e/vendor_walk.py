"""A vendor that wants a sign-in, from its address to a tool's result, as an admin and an agent go."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.shared_gateway import Gateway
from tests.e2e.vendor_browser import COOKIE, pressed, shared_page
from tests.vendors.processes import PLAIN_HTTP

MAX_SIGN_INS = 3
MESSAGE = re.compile(r'role="alert"[^>]*>(.*?)</(?:div|p|section)>', re.S)


@dataclass
class Walk:
    """One vendor and one organization. `trail`: the steps, in words."""

    gateway: Gateway
    vendor: str
    bot: ServiceClient
    trail: list[str] = field(default_factory=list)

    def reaches_a_result(self) -> bool:
        """Signs in and calls; again where the vendor wants more scopes, or another sign-in."""
        with self.gateway.web.client() as browser:
            browser.cookies.set(COOKIE, self.gateway.operator.run("sign_in_owner", org_id=self.bot.org_id))
            for _ in range(MAX_SIGN_INS):
                if not self._connects(browser):
                    return False
                if self._calls_twice(browser):
                    return True
        return False

    def _connects(self, browser: httpx.Client) -> bool:
        page = shared_page(self.bot.org_id, self.vendor)
        answer = pressed(browser, page)
        if "Refresh" not in answer.headers and "accepts_any_server" in browser.get(page).text:
            self.trail.append("the admin allows another server")
            pressed(browser, page, {"action": "rules", "people_may_connect": "on", "accepts_any_server": "on"})
            answer = pressed(browser, page)
        if "Refresh" not in answer.headers:
            return self._refused(browser.get(page))
        there = httpx.get(html.unescape(answer.headers["Refresh"].removeprefix("0;url=")), **PLAIN_HTTP, timeout=10.0)
        back = browser.get(there.headers["Location"])
        return back.status_code == 302 or self._refused(back)

    def _refused(self, page: httpx.Response) -> bool:
        self.trail += [" ".join(re.sub(r"<[^>]+>", " ", each).split()) for each in MESSAGE.findall(page.text)]
        return False

    def _calls_twice(self, browser: httpx.Client) -> bool:
        """Twice, because a vendor may change its mind after the first one."""
        listed = agent.rpc(browser, self.bot.agent_key, "tools/list").json()["result"]["tools"]
        names = [tool["name"] for tool in listed]
        self.trail.append(f"tools: {names}")
        return bool(names) and all(self._call(browser, names[0]) for _ in range(2))

    def _call(self, browser: httpx.Client, name: str) -> bool:
        result: dict[str, Any] = agent.call(browser, self.bot.agent_key, name).json()["result"]
        self.trail.append(f"call: {result['content'][0]['text']}")
        return not result.get("isError", False)

"""A connection at an authorization server that others wrote, from the first sign-in to its revocation there."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.clients import programs
from tests.e2e import agent
from tests.e2e.shared_gateway import Gateway
from tests.e2e.vendor_browser import COOKIE, OWN_PAGE, agreed, begun, pressed, shared_page
from tests.factories.vendor_oauth import VENDOR
from tests.vendors.processes import PLAIN_HTTP, RunningServer
from tests.vendors.servers import node_oauth_server

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")
pytestmark = pytest.mark.one_back_end


@pytest.fixture
def provider() -> Iterator[RunningServer]:
    """A vendor with oidc-provider: it rotates refresh tokens, and ends a family whose token comes twice."""
    if programs.newer_node() is None:
        programs.skip_without_newer_node()
    with node_oauth_server("oidc_server.mjs") as server:
        yield server


def test_tokens_are_renewed_and_end_at_the_vendor(gateway: Gateway, provider: RunningServer) -> None:
    run = gateway.operator.run
    run("load_catalog", text=VENDOR.format(url=provider.mcp_url, more=""))
    bot = gateway.new_service_client({})
    own = {"org_id": bot.org_id, "vendor": "signin"}
    with gateway.web.client() as browser:
        browser.cookies.set(COOKIE, run("sign_in_owner", org_id=bot.org_id))
        for page, fields in ((shared_page(bot.org_id), {}), (OWN_PAGE, {**own, "connect": ""})):
            assert browser.get(agreed(begun(browser, page, fields))).status_code == 302
        for number in range(2):
            run("make_connections_due", org_id=bot.org_id)
            assert "nina: " in said(browser, bot.agent_key)
            assert stats(provider) == {"refreshed": number + 1, "revoked": 0}
        assert pressed(browser, OWN_PAGE, {**own, "disconnect": ""}).status_code == 302
    run("run_task", name="credentials.revoke_at_vendors")
    assert stats(provider)["revoked"] == 1


def said(client: httpx.Client, bearer: str) -> str:
    text: str = agent.result(agent.call(client, bearer, "signin_whoami"))["content"][0]["text"]
    return text


def stats(provider: RunningServer) -> dict[str, int]:
    counts: dict[str, int] = httpx.get(f"{provider.origin}/_stats", **PLAIN_HTTP, timeout=5.0).json()
    return counts

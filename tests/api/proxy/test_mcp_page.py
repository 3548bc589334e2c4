"""GET /v1/mcp: browsers get a page, and MCP clients what they always got."""

from __future__ import annotations

import pytest
from django.conf import settings

from tests.api.proxy.conftest import Agent
from tests.api.proxy.test_mcp_transport import CHALLENGE

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
HTML = "text/html; charset=utf-8"


@pytest.mark.parametrize("path", ["/v1/mcp", "/v1/mcp/"])
async def test_a_browser_learns_what_the_address_is_for(agent: Agent, path: str) -> None:
    answer = await agent.http.get(path, headers={"Accept": BROWSER})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, HTML)
    assert f"<code>{settings.BASE_URL}/v1/mcp</code>" in answer.text
    for link in ("/setup", "/docs/migrate", "/docs/api", "/status", "/signin?next=%2Fsetup"):
        assert f'href="{link}"' in answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "WWW-Authenticate" not in answer.headers


@pytest.mark.parametrize(
    "accept",
    [
        "text/event-stream",
        "application/json, text/event-stream",
        "*/*",
        "text/*",
        "",
        # A client that accepts everything by name wants its stream.
        "text/html, application/json, text/event-stream",
    ],
)
async def test_a_client_gets_the_challenge_as_before(agent: Agent, accept: str) -> None:
    answer = await agent.http.get("/v1/mcp", headers={"Accept": accept})
    posted = await agent.http.post("/v1/mcp", json={}, headers={"Accept": accept})
    assert (answer.status_code, answer.content) == (401, posted.content)
    assert answer.headers["WWW-Authenticate"] == CHALLENGE
    assert [*answer.headers] == [*posted.headers]
    assert answer.headers["Content-Type"] == "application/json"


async def test_a_bearer_is_checked_whatever_is_accepted(agent: Agent) -> None:
    bearer = {"Authorization": "Bearer cak_unknown"}
    answer = await agent.http.get("/v1/mcp", headers={"Accept": BROWSER, **bearer})
    assert (answer.status_code, answer.headers["Content-Type"]) == (401, "application/json")
    assert answer.content == (await agent.http.get("/v1/mcp", headers=bearer)).content


async def test_a_script_of_another_site_gets_no_page(agent: Agent) -> None:
    answer = await agent.http.get("/v1/mcp", headers={"Accept": BROWSER, "Origin": "https://evil.example"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (403, "application/json")


@pytest.mark.parametrize("method", ["HEAD", "POST", "DELETE", "PUT", "OPTIONS"])
async def test_only_a_visit_gets_the_page(agent: Agent, method: str) -> None:
    answer = await agent.http.request(method, "/v1/mcp", headers={"Accept": BROWSER})
    assert answer.headers.get("Content-Type") != HTML


@pytest.mark.parametrize("path", ["/v1/fake/mcp", "/v1/fake/cli", "/v1/fake/cli/schema"])
async def test_other_endpoints_stay_as_they_are(agent: Agent, path: str) -> None:
    answer = await agent.http.get(path, headers={"Accept": BROWSER})
    assert (answer.status_code, answer.headers["Content-Type"]) == (401, "application/json")
    assert answer.content == (await agent.http.get(path)).content

"""Set up a client: a guide for each, the last choice, and no secret anywhere."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from gateway.coordination.sqlite_store import SQLiteStore
from orgs.models import ToolSnapshot
from proxy.control_plane.health.states import HealthStatus
from proxy.pages.client_guides import ClientGuide, guides
from tests.api.pages.conftest import Site, text
from tests.factories.health import put_health
from tests.factories.tenant import connect

MCP_URL = "http://testserver/v1/mcp"
CLIENTS = [
    "Claude Code",
    "Claude",
    "ChatGPT",
    "Cursor",
    "VS Code",
    "Codex",
    "Windsurf",
    "Gemini CLI",
    "Zed",
    "n8n",
    "Claude Code with a key",
    "curl (MCP)",
    "curl (plain JSON)",
    "Device flow",
    "Python SDK",
    "TypeScript SDK",
]


def setup(site: Site, who: str = "owner", **query: str) -> Any:
    response = site.cast.client(who).get(site.path("proxy_pages:setup"), query)
    assert response.status_code == 200
    return response


def filled(slug: str) -> ClientGuide:
    (found,) = (each for each in guides() if each.slug == slug)
    return found.filled("https://gateway.example", "acme")


def test_every_client_can_be_chosen(site: Site) -> None:
    assert [each.client for each in guides()] == CLIENTS
    page = text(setup(site))
    for each in guides():
        assert f'<a href="?client={each.slug}"' in page
        chosen = setup(site, client=each.slug)
        assert f'<h2 id="guide">{each.client}</h2>' in text(chosen)
        assert MCP_URL in text(chosen)


def test_a_vendor_that_does_not_respond_is_not_green(site: Site, shared: SQLiteStore) -> None:
    connect(site.cast.org, site.cast.user("owner"))
    assert "Not responding" not in text(setup(site))
    put_health(shared, "fake", HealthStatus.DOWN)
    assert "Fake: Not responding</li>" in text(setup(site))


@pytest.mark.parametrize("each", guides(), ids=lambda each: each.slug)
def test_a_guide_is_whole_and_honest(each: ClientGuide) -> None:
    assert each.steps
    assert each.again
    texts = [each.code, each.link, *each.steps, each.again, each.where]
    assert "cak_" not in " ".join(texts)
    done = each.filled("https://gateway.example", "acme")
    for written in (done.code, done.link, *done.steps):
        for word in ("{mcp_url}", "{base_url}", "{vendor}", "{base64}", "{quoted}"):
            assert word not in written
    # A date belongs to a check, a version to a run, a source to documentation.
    assert (each.checked_on is not None) is (each.checked != "none")
    assert bool(each.version) is (each.checked == "run")
    assert bool(each.source) is (each.checked == "documentation")


@pytest.mark.parametrize("slug", ["cursor", "vscode", "windsurf", "zed"])
def test_files_of_settings_are_json(slug: str) -> None:
    assert "https://gateway.example/v1/mcp" in str(json.loads(filled(slug).code))


def test_install_links_carry_the_same_address() -> None:
    (config,) = parse_qs(urlsplit(filled("cursor").link).query)["config"]
    assert json.loads(b64decode(config)) == {"url": "https://gateway.example/v1/mcp"}
    vscode = json.loads(unquote(filled("vscode").link.partition("?")[2]))
    assert vscode == {"name": "gateway", "type": "http", "url": "https://gateway.example/v1/mcp"}


def test_the_last_choice_is_remembered_here_and_on_home(site: Site) -> None:
    browser, path = site.cast.client("member"), site.path("proxy_pages:setup")
    assert '<h2 id="guide">Claude Code</h2>' in text(browser.get(path))
    cookie = browser.get(path, {"client": "codex"}).cookies["client"]
    assert (cookie.value, cookie["httponly"], cookie["samesite"]) == ("codex", True, "Lax")
    assert '<h2 id="guide">Codex</h2>' in text(browser.get(path))
    assert "codex mcp add gateway" in text(browser.get(site.path("proxy_pages:home")))


@pytest.mark.parametrize("client", ["", "unknown", "../codex", "<script>"])
def test_an_unknown_choice_is_nobodys(site: Site, client: str) -> None:
    response = setup(site, client=client)
    assert "client" not in response.cookies
    assert '<h2 id="guide">Claude Code</h2>' in text(response)
    browser = site.cast.client("member")
    browser.cookies["client"] = client
    assert '<h2 id="guide">Claude Code</h2>' in text(browser.get(site.path("proxy_pages:setup")))


def test_a_client_on_the_internet_cannot_reach_this_computer(site: Site, settings: Any) -> None:
    for slug in ("claude", "chatgpt"):
        assert "They can’t reach" in text(setup(site, client=slug))
    assert "They can’t reach" not in text(setup(site, client="cursor"))
    settings.BASE_URL = "https://gateway.example"
    assert "They can’t reach" not in text(setup(site, client="claude"))


def test_a_key_is_made_by_admins_and_asked_for_by_members(site: Site) -> None:
    link = site.path("oauth_pages:service-clients")
    assert link in text(setup(site, "admin", client="n8n")).partition('id="guide"')[2]
    page = text(setup(site, "member", client="n8n")).partition('id="guide"')[2]
    assert link not in page
    assert "Ask an admin: Owner, Admin" in page


def test_a_sign_in_page_is_no_fault_and_the_plain_call_runs_a_tool(site: Site) -> None:
    page = text(setup(site, who="member"))
    assert "You sign in with your browser, so no key is needed." in page
    assert "The client opens a sign-in page</dt><dd>That’s expected: sign in and choose Allow.</dd>" in page
    assert '{"tool":' in filled("curl-rest").code


def test_the_example_names_a_vendor_that_the_reader_can_use(site: Site) -> None:
    assert "/v1/&lt;vendor&gt;/cli" in text(setup(site, client="curl-rest"))
    connect(site.cast.org, site.cast.user("owner"))
    assert "/v1/fake/cli" in text(setup(site, client="curl-rest"))
    assert "/v1/fake/cli" not in text(setup(site, "member", client="curl-rest"))


@pytest.mark.parametrize(("who", "status"), [("other_owner", 404), ("stranger", 404), ("nobody", 302)])
def test_strangers_see_no_guide(site: Site, who: str, status: int) -> None:
    answer = site.cast.client(who).get(site.path("proxy_pages:setup"), {"client": "codex"})
    assert answer.status_code == status
    assert "client" not in answer.cookies


@pytest.mark.parametrize(("who", "to"), [("member", "setup"), ("stranger", "welcome"), ("nobody", "signin")])
def test_the_address_without_an_organization_leads_to_the_guides(site: Site, who: str, to: str) -> None:
    answer = site.cast.client(who).get("/setup")
    targets = {"setup": site.path("proxy_pages:setup"), "welcome": "/welcome", "signin": "/signin?next=%2Fsetup"}
    assert (answer.status_code, answer["Location"]) == (302, targets[to])


def test_the_address_without_an_organization_takes_no_post(site: Site) -> None:
    assert site.owner().post("/setup").status_code == 405


def test_the_short_tool_list_is_compared_with_the_viewers_own_vendors(site: Site) -> None:
    for organization, who in ((site.cast.org, "owner"), (site.cast.other_org, "other_owner")):
        connect(organization, site.cast.user(who))
    page = text(setup(site))
    assert f"{MCP_URL}?tools=search" in page
    assert "The short list takes up" not in page, "the sizes are not known yet"
    ToolSnapshot.objects.create(organization=site.cast.other_org, vendor="fake", credential_scope="", list_bytes=40_000)
    assert "The short list takes up" not in text(setup(site)), "another organization's list"
    ToolSnapshot.objects.create(organization=site.cast.org, vendor="fake", credential_scope="", list_bytes=81_920)
    assert "take up 80.0 KB, about 20,480 tokens" in text(setup(site)).replace("\xa0", " ")

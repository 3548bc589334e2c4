"""Every page for everybody: who gets it, who is refused, who is asked to sign in."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client as Browser
from django.urls import reverse

from tests.api.pages.conftest import Site, key_prefix, text

EVERYBODY = ("owner", "admin", "member", "other_owner", "stranger", "nobody")
FOR_MEMBERS = {"owner": 200, "admin": 200, "member": 200, "other_owner": 404, "stranger": 404, "nobody": 302}
FOR_ADMINS = FOR_MEMBERS | {"member": 403}
FOR_PEOPLE = dict.fromkeys(EVERYBODY, 200) | {"nobody": 302}
PAGES = {
    "proxy_pages:home": ((), FOR_MEMBERS),
    "proxy_pages:setup": ((), FOR_MEMBERS),
    "proxy_pages:connection-test": ((), FOR_MEMBERS),
    "proxy_pages:vendors": ((), FOR_MEMBERS),
    "proxy_pages:explain": ((), FOR_MEMBERS),
    "proxy_pages:search": ((), FOR_MEMBERS),
    "proxy_pages:vendor": (("fake",), FOR_MEMBERS),
    "proxy_pages:vendor-access": (("fake",), FOR_ADMINS),
    "proxy_pages:vendor-items": (("fake",), FOR_ADMINS),
    "audit_pages:vendor-activity": (("fake",), FOR_ADMINS),
    "credentials:catalog": ((), FOR_ADMINS),
    "credentials:connection": (("fake",), FOR_ADMINS),
    "credentials:service-client-credential": (("client", "fake"), FOR_ADMINS),
    "oauth_pages:service-clients": ((), FOR_ADMINS),
    "oauth_pages:service-client": (("client",), FOR_ADMINS),
    "oauth_pages:service-client-new": ((), FOR_ADMINS),
    "oauth_pages:service-client-first-call": (("client",), FOR_ADMINS),
    "oauth_pages:service-client-access": (("client",), FOR_ADMINS),
    "oauth_pages:service-client-tools": (("client",), FOR_ADMINS),
    "oauth_pages:service-client-settings": (("client",), FOR_ADMINS),
    "oauth_pages:client-secret": (("client",), FOR_ADMINS),
    "audit_pages:service-client-activity": (("client",), FOR_ADMINS),
    "proxy_pages:client-items": (("client", "fake"), FOR_ADMINS),
    "proxy_pages:client-tools": (("client", "fake"), FOR_ADMINS),
    "oauth_pages:agent-key": (("client",), FOR_ADMINS),
    "oauth_pages:service-client-delete": (("client",), FOR_ADMINS),
    "audit_pages:request-log": ((), FOR_ADMINS),
    "audit_pages:own-calls": ((), FOR_MEMBERS),
    "audit_pages:admin-log": ((), FOR_ADMINS),
    "audit_pages:usage": ((), FOR_ADMINS),
    "orgs:server-access": ((), FOR_ADMINS),
    "proxy_pages:tool-access": (("fake",), FOR_ADMINS),
}
WRITES = (
    "credentials:connection",
    "credentials:service-client-credential",
    "oauth_pages:service-client-new",
    "oauth_pages:service-client-access",
    "oauth_pages:service-client-settings",
    "oauth_pages:client-secret",
    "oauth_pages:agent-key",
    "oauth_pages:service-client-delete",
)


def address(site: Site, name: str) -> str:
    more = [site.tenant.client.client_id if part == "client" else part for part in PAGES[name][0]]
    return site.path(name, *more)


@pytest.mark.parametrize("who", EVERYBODY)
@pytest.mark.parametrize("name", PAGES)
def test_pages_of_an_organization(site: Site, name: str, who: str) -> None:
    path = address(site, name)
    response = site.cast.client(who).get(path)
    expected = PAGES[name][1][who]
    assert response.status_code == expected
    if expected == 302:
        assert response["Location"] == f"/signin?next={path}"
    else:
        assert response["Cache-Control"] == "no-store"
        assert "<h1>" in text(response)
    if expected in {403, 404}:
        # Only members learn the name, in the frame around the refusal.
        assert (site.cast.org.name in text(response)) == (who in {"admin", "member"})
        assert response["X-Request-Id"] in text(response)


@pytest.mark.parametrize("who", ["member", "other_owner", "stranger", "nobody"])
@pytest.mark.parametrize("name", WRITES)
def test_writes_are_refused_like_reads(site: Site, name: str, who: str) -> None:
    response = site.cast.client(who).post(address(site, name), {"name": "intruder", "apiKey": "x", "action": "revoke"})
    assert response.status_code == PAGES[name][1][who]
    assert not site.asked
    assert key_prefix(site.tenant.client) is not None


@pytest.mark.parametrize("who", EVERYBODY)
@pytest.mark.parametrize("path", ["/welcome", "/profile"])
def test_pages_of_a_person(site: Site, path: str, who: str) -> None:
    response = site.cast.client(who).get(path)
    assert response.status_code == FOR_PEOPLE[who]
    if who == "nobody":
        assert response["Location"] == f"/signin?next={path}"


@pytest.mark.parametrize(
    "name",
    [
        "proxy_pages:home",
        "proxy_pages:setup",
        "proxy_pages:vendors",
        "oauth_pages:service-clients",
        "oauth_pages:service-client",
        "oauth_pages:service-client-first-call",
        "oauth_pages:service-client-tools",
        "audit_pages:service-client-activity",
        "audit_pages:request-log",
        "audit_pages:own-calls",
        "audit_pages:admin-log",
        "audit_pages:usage",
    ],
)
def test_a_page_without_a_form_takes_no_post(site: Site, name: str) -> None:
    assert site.owner().post(address(site, name)).status_code == 405


def test_an_organization_that_does_not_exist_looks_like_a_foreign_one(site: Site) -> None:
    browser = site.cast.client("stranger")
    foreign = browser.get(site.path("proxy_pages:home"))
    unknown = browser.get(reverse("proxy_pages:home", args=[uuid.uuid4()]))
    assert foreign.status_code == unknown.status_code == 404
    strip = [text(page).replace(page["X-Request-Id"], "") for page in (foreign, unknown)]
    assert strip[0] == strip[1]


@pytest.mark.parametrize(
    "name",
    [name for name, (more, _) in PAGES.items() if more == ("client",)],
)
def test_a_service_client_of_another_organization_is_not_found(site: Site, name: str) -> None:
    foreign = reverse(name, args=[site.cast.other_org.id, site.tenant.client.client_id])
    browser = site.cast.client("other_owner")
    assert browser.get(foreign).status_code == 404
    assert browser.post(foreign, {"action": "revoke", "vendor": "fake"}).status_code in {404, 405}
    assert key_prefix(site.tenant.client) is not None


def test_a_vendor_that_does_not_exist_is_not_found(site: Site) -> None:
    assert site.owner().get(site.path("credentials:connection", "nothing")).status_code == 404


LINKS_OF_MEMBERS = {
    "Home": {"Overview", "Set up a client"},
    "Vendors": {"All vendors"},
    "Agents": {"Connected apps"},
    "People": {"Members", "Access requests", "Check access"},
    "Activity": {"My calls"},
}
LINKS_OF_ADMINS = LINKS_OF_MEMBERS | {
    "Agents": {"All agents", "Connected apps"},
    "People": {"Members", "Teams", "Vendor access", "Invitations", "Access requests", "Check access"},
    "Activity": {"Calls", "Usage", "Changes", "Log shipping"},
}


@pytest.mark.parametrize(
    ("who", "links"),
    [
        ("owner", LINKS_OF_ADMINS | {"Settings": {"General", "Alerts", "Billing"}}),
        ("admin", LINKS_OF_ADMINS | {"Settings": {"Alerts"}}),
        ("member", LINKS_OF_MEMBERS),
    ],
)
def test_navigation_holds_what_the_role_may_open(site: Site, who: str, links: dict[str, set[str]]) -> None:
    browser = site.cast.client(who)
    page = browser.get(site.path("proxy_pages:home"))
    sections = page.context["nav"]
    assert {section["label"]: {item["label"] for item in section["items"]} for section in sections} == links
    assert [section["label"] for section in sections if section["is_open"]] == ["Home"]
    items = [item for section in sections for item in section["items"]]
    assert [item["label"] for item in items if item["active"]] == ["Overview"]
    assert text(page).count('aria-current="page"') == 1
    assert all(browser.get(item["url"]).status_code == 200 for item in items)


def test_a_member_reads_connections_without_links_to_forms(site: Site) -> None:
    for name in (site.path("proxy_pages:vendors"), site.path("proxy_pages:vendor", "fake")):
        page = text(site.cast.client("member").get(name))
        assert site.path("credentials:connection", "fake") not in page
        assert site.path("credentials:catalog") not in page
        assert "Ask an admin: Owner, Admin" in page


@pytest.mark.parametrize(
    ("who", "target"), [("stranger", "/welcome"), ("owner", "overview"), ("nobody", None), ("other_owner", "other")]
)
def test_the_start_page_leads_to_work(site: Site, who: str, target: str | None) -> None:
    response = site.cast.client(who).get("/")
    places = {
        "overview": site.path("proxy_pages:home"),
        "other": reverse("proxy_pages:home", args=[site.cast.other_org.id]),
        "/welcome": "/welcome",
    }
    if target is None:
        assert response.status_code == 200
        assert 'href="/signin"' in text(response)
    else:
        assert (response.status_code, response["Location"]) == (302, places[target])


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ("/profile", "%2Fprofile"),
        ("https://evil.example/", "%2F"),
        ("//evil.example/", "%2F"),
        ("javascript:alert(1)", "%2F"),
        ("", "%2F"),
    ],
)
def test_sign_in_returns_to_this_site_only(site: Site, asked: str, kept: str) -> None:
    page = Browser().get("/signin", {"next": asked})
    assert page.status_code == 200
    assert f'href="/oidc/authenticate/?next={kept}"' in text(page)
    assert ("Sign in to continue." in text(page)) is (kept != "%2F")


@pytest.mark.parametrize(
    ("code", "sentence"),
    [("unreachable", "can’t reach"), ("denied", "Sign-in was canceled."), ("1", "couldn’t sign you in")],
)
def test_a_failed_sign_in_says_why(site: Site, code: str, sentence: str) -> None:
    page = text(Browser().get("/signin", {"failed": code}))
    assert sentence in page
    assert 'role="alert"' in page
    assert 'role="alert"' not in text(Browser().get("/signin", {"failed": "<b>invented</b>"}))

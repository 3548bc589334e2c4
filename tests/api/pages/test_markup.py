"""The frame, the error pages and what people type: inert, labelled, and nothing inline."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.contrib.auth.models import AnonymousUser
from django.contrib.staticfiles import finders
from django.http import HttpResponse
from django.test import Client as Browser
from django.test import RequestFactory

from audit.models import LogDestination
from audit.shipping.platforms.registry import PLATFORMS
from gateway.site import errors
from gateway.web.navigation import SECTIONS
from orgs.models import Organization
from tests.api.audit.log_rows import add_change
from tests.api.audit.rows import add_row
from tests.api.pages.conftest import INERT, SCRIPT, Site, text
from tests.factories.destinations import webhook_of
from tests.factories.tenant import connect, make_tenant


class Strict(HTMLParser):
    """Collects what a strict Content-Security-Policy would block, ids, labels and used icons."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.inline: list[str] = []
        self.ids: list[str] = []
        self.label_targets: set[str] = set()
        self.fields: list[dict[str, str]] = []
        self.icons: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.inline += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        if tag == "style" or (tag == "script" and "src" not in given and given.get("type") != "application/json"):
            self.inline.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "label":
            self.label_targets.add(given.get("for", ""))
        if tag in {"input", "select", "textarea"} and given.get("type") != "hidden":
            self.fields.append(given)
        if tag == "use":
            self.icons.add(given["href"].partition("#")[2])


def sprite_symbols() -> set[str]:
    path = finders.find("vendor/tabler-icons-3.51.0/sprite.svg")
    assert isinstance(path, str)
    with open(path, encoding="utf-8") as file:
        return set(re.findall(r'<symbol id="([^"]+)"', file.read()))


def all_pages(site: Site) -> list[str]:
    return [
        "/welcome",
        "/profile",
        site.path("proxy_pages:home"),
        site.path("proxy_pages:setup"),
        site.path("proxy_pages:connection-test"),
        site.path("proxy_pages:vendors"),
        f"{site.path('proxy_pages:explain')}?who=owner@example.com&tool=fake_list",
        site.path("proxy_pages:vendor", "fake"),
        site.path("proxy_pages:vendor-access", "fake"),
        site.path("proxy_pages:vendor-items", "fake"),
        site.path("audit_pages:vendor-activity", "fake"),
        site.path("proxy_pages:tool-access", "fake"),
        f"{site.path('proxy_pages:tool-access', 'fake')}?view=preview",
        site.path("orgs:server-access"),
        f"{site.path('orgs:server-access')}?view=teams",
        f"{site.path('orgs:server-access')}?view=agents",
        site.path("credentials:catalog"),
        site.path("credentials:connection", "fake"),
        site.path("oauth_pages:service-clients"),
        site.path("oauth_pages:service-client-new"),
        site.client_path("service-client"),
        site.client_path("service-client-first-call"),
        site.client_path("service-client-access"),
        site.client_path("service-client-tools"),
        site.client_path("service-client-settings"),
        site.client_path("client-secret"),
        site.path("audit_pages:service-client-activity", site.tenant.client.client_id),
        site.path("proxy_pages:client-tools", site.tenant.client.client_id, "fake"),
        site.path("credentials:service-client-credential", site.tenant.client.client_id, "fake"),
        site.client_path("agent-key"),
        site.client_path("service-client-delete"),
        site.path("audit_pages:request-log"),
        f"{site.path('audit_pages:request-log')}?status=error&tool=x",
        site.path("audit_pages:admin-log"),
        site.path("audit_pages:usage"),
        site.path("billing_pages:plan"),
        f"{site.path('billing_pages:plan')}?checkout=done",
        site.path("audit_pages:log-shipping"),
        site.path("audit_pages:log-platforms"),
        *(site.path("audit_pages:log-destination-new", value) for value in PLATFORMS),
        *(
            site.path(f"audit_pages:{name}", str(row.pk))
            for name in ("log-destination", "log-destination-delete")
            for row in LogDestination.objects.all()
        ),
        f"{site.path('audit_pages:admin-log')}?event_type=x&period=7d",
        "/nothing-here",
    ]


@pytest.fixture
def full(site: Site) -> Site:
    """With a connected vendor, calls of every outcome and a destination of the log."""
    connect(site.cast.org, site.cast.user("owner"))
    for status in ("success", "error", "denied"):
        add_row(org_id=site.cast.org.id, status=status, request_id=f"r-{status}")
    webhook_of(site.cast.user("owner"), site.cast.org, secret="some-signing-secret")
    add_change(site.cast.org.id, metadata={"role": "admin", "was": "member", "email": "a@example.com"})
    return site


@pytest.mark.parametrize("is_full", [False, True])
def test_pages_are_well_made(site: Site, is_full: bool, request: pytest.FixtureRequest) -> None:
    if is_full:
        request.getfixturevalue("full")
    browser, symbols = site.owner(), sprite_symbols()
    for path in all_pages(site):
        response = browser.get(path)
        page = Strict(text(response))
        assert not page.inline, path
        assert len(page.ids) == len(set(page.ids)), path
        assert text(response).count("<h1>") == 1, path
        assert text(response).count("<main") == 1, path
        assert page.icons <= symbols, (path, page.icons - symbols)
        for field in page.fields:
            labelled = field.get("id") in page.label_targets or "data-filter" in field
            assert labelled, (path, field)


def test_navigation_icons_exist() -> None:
    assert {section.icon for section in SECTIONS} <= sprite_symbols()


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("proxy_pages:home", "Home - Acme - Gateway"),
        ("audit_pages:request-log", "Calls - Acme - Gateway"),
        ("audit_pages:admin-log", "Changes - Acme - Gateway"),
        ("audit_pages:usage", "Usage - Acme - Gateway"),
    ],
)
def test_the_title_names_page_and_organization(site: Site, path: str, title: str) -> None:
    assert f"<title>{title}</title>" in text(site.owner().get(site.path(path)))


def test_pages_send_the_strict_policy(site: Site) -> None:
    policy = site.owner().get(site.path("proxy_pages:home"))["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "script-src 'self'" in policy


def test_names_with_markup_are_inert(site: Site) -> None:
    owner = site.cast.user("owner")
    owner.display_name = SCRIPT
    owner.save()
    Organization.objects.update(name=SCRIPT)
    evil = make_tenant(site.cast.org, owner, name=SCRIPT[:90])
    for status in ("success", "error"):
        add_row(
            org_id=site.cast.org.id, user_label=SCRIPT, tool=SCRIPT, vendor=SCRIPT, status=status, error_code=SCRIPT
        )
    browser = site.owner()
    paths = [
        *all_pages(site),
        site.path("oauth_pages:service-client", evil.client.client_id),
        site.path("credentials:service-client-credential", evil.client.client_id, "fake"),
        site.path("oauth_pages:service-client-access", evil.client.client_id),
        site.path("oauth_pages:service-client-settings", evil.client.client_id),
        site.path("oauth_pages:agent-key", evil.client.client_id),
        site.path("oauth_pages:service-client-delete", evil.client.client_id),
        f"{site.path('audit_pages:request-log')}?tool={SCRIPT}&start={SCRIPT}&request_id={SCRIPT}",
    ]
    for path in paths:
        page = text(browser.get(path))
        assert SCRIPT not in page, path
        assert "<script>" not in page, path
        assert path == "/nothing-here" or INERT in page, path


def test_what_was_typed_comes_back_inert(site: Site) -> None:
    typed = f'"><img src=x onerror=alert(1)>{"x" * 500}'
    page = text(site.cast.client("stranger").post("/welcome", {"name": typed}))
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


ERRORS: dict[int, Callable[..., HttpResponse]] = {
    400: lambda request: errors.bad_request(request, ValueError()),
    403: lambda request: errors.permission_denied(request, PermissionError()),
    404: lambda request: errors.not_found(request, LookupError()),
    405: lambda request: errors.error_response(request, 405),
    410: lambda request: errors.error_response(request, 410),
    429: lambda request: errors.error_response(request, 429),
    500: errors.server_error,
    503: lambda request: errors.error_response(request, 503),
}


class Untouchable:
    """Stands for what needs the database: any use of it fails the test."""

    def __getattribute__(self, name: str) -> object:
        raise AssertionError(f"an error page asked for {name}")


@pytest.mark.parametrize("status", ERRORS)
def test_error_pages_need_neither_database_nor_person(status: int) -> None:
    request = RequestFactory().get("/somewhere")
    request.request_id = "r-42"  # type: ignore[attr-defined]
    request.user = Untouchable()  # type: ignore[assignment]
    response = ERRORS[status](request)
    page = text(response)
    assert response.status_code == status
    assert "r-42" in page
    assert f">{status}</p>" in page
    assert "<h1>" in page
    assert 'href="/"' in page
    assert not Strict(page).inline


@pytest.mark.parametrize(
    ("status", "title"), [(409, "couldn’t read that request"), (422, "couldn’t read that request"), (502, "our side")]
)
def test_other_statuses_get_the_nearest_page(status: int, title: str) -> None:
    request = RequestFactory().get("/somewhere")
    request.user = AnonymousUser()
    response = errors.error_response(request, status)
    assert response.status_code == status
    assert title in text(response)


@pytest.mark.parametrize("path", ["/api/x", "/oauth/x", "/.well-known/x", "/v1/x"])
def test_machines_get_json(path: str) -> None:
    response = errors.error_response(RequestFactory().get(path), 429)
    assert response["Content-Type"] == "application/json"
    assert b'"error": "rate_limited"' in response.content


def test_a_sentence_of_the_refusal_is_shown_once(site: Site) -> None:
    page = text(site.cast.client("member").get(site.path("audit_pages:request-log")))
    assert page.count("You need the admin role.") == 1
    missing = text(Browser().get("/nothing-here"))
    assert missing.count("Page not found") == 2  # the title of the window, and the heading


def test_the_log_shows_filters_and_takes_them_away(full: Site) -> None:
    browser, path = full.owner(), full.path("audit_pages:request-log")
    page = browser.get(path, {"status": "error"})
    assert [row.status for row in page.context["entries"]] == ["error"]
    assert 'class="pill" href="?"' in text(page)
    assert "No calls match these filters" in text(browser.get(path, {"tool": "nothing"}))
    refused = browser.get(path, {"start": "yesterday"})
    assert refused.status_code == 400
    assert 'role="alert"' in text(refused)


def test_setup_names_the_address_and_no_key(full: Site) -> None:
    page = text(full.owner().get(full.path("proxy_pages:setup"), {"client": "curl-mcp"}))
    assert "http://testserver/v1/mcp" in page
    assert "$GATEWAY_KEY" in page
    assert full.tenant.agent_key not in page
    assert page.count('role="region"') == page.count("data-copy hidden")


def test_what_a_script_draws_is_hidden_until_it_does(full: Site) -> None:
    """No element claims a role that its kind does not have."""
    for route in ("proxy_pages:setup", "audit_pages:usage"):
        page = text(full.owner().get(full.path(route)))
        assert not re.search(r'role="tab', page)
        assert all(" hidden" in chart for chart in re.findall(r'<div class="chart"[^>]*>', page))
    assert 'class="chart"' in page


def test_wide_windows_are_used() -> None:
    style = finders.find("css/app.css")
    assert style is not None
    (width,) = re.findall(r"^\.main \{[^}]*max-width: (\d+)px", Path(str(style)).read_text(), flags=re.M)
    assert int(width) >= 1600

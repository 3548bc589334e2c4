"""Changes by the forms, and their refusals."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client as Browser
from django.urls import reverse

from credentials.models import Credential
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib import clock
from gateway.lib.errors import NotFound
from oauth_ext.models import Client
from orgs.models import Organization
from tests.api.pages.conftest import Site, hidden, key_prefix, notices, text

NEW_AGENT = {"name": "bot", "access": "all", "expires_in_days": "30", "mcp_client": "cursor"}
BACKEND = "orgs.signin.backend.IdentityBackend"
TOKEN = "csrfmiddlewaretoken"


def strict(site: Site, who: str = "owner") -> Browser:
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(site.cast.user(who), backend=BACKEND)
    return browser


def test_an_organization_is_created(site: Site) -> None:
    browser = site.cast.client("stranger")
    response = browser.post("/welcome", {"name": "Initech"}, follow=True)
    made = Organization.objects.get(name="Initech")
    assert response.redirect_chain == [(reverse("proxy_pages:home", args=[made.id]), 302)]
    assert notices(response) == ["Initech is ready. Connect a vendor next."]
    assert response.context["membership"].role == "owner"
    assert response.context["first_steps"].done == 0


@pytest.mark.parametrize("name", ["", "   ", "x" * 500])
def test_an_organization_without_a_good_name_is_not(site: Site, name: str) -> None:
    before = Organization.objects.count()
    response = site.cast.client("stranger").post("/welcome", {"name": name})
    assert response.status_code == 422
    assert Organization.objects.count() == before
    page = text(response)
    assert '<a href="#id_name">Organization name</a>' in page
    assert 'aria-invalid="true"' in page
    assert 'aria-describedby="id_name_helptext id_name_error"' in page
    assert 'id="id_name_error"' in page


def test_names_are_saved(site: Site) -> None:
    browser = site.cast.client("member")
    response = browser.post("/profile", {"display_name": "Mia", "first_name": "Maria", "last_name": ""}, follow=True)
    assert notices(response) == ["Saved."]
    person = site.cast.user("member")
    person.refresh_from_db()
    assert (person.display_name, person.first_name, person.last_name) == ("Mia", "Maria", "")


def test_a_name_that_is_too_long_is_shown_again(site: Site) -> None:
    response = site.cast.client("member").post("/profile", {"display_name": "x" * 500, "first_name": "Maria"})
    assert response.status_code == 422
    assert 'value="Maria"' in text(response)
    person = site.cast.user("member")
    person.refresh_from_db()
    assert person.display_name == "Member"


def test_a_vendor_is_connected_replaced_and_disconnected(site: Site) -> None:
    browser, path = site.owner(), site.path("credentials:connection", "fake")
    response = browser.post(path, {"apiKey": " first-key "}, follow=True)
    assert notices(response)[0] == "Fake is connected."
    assert site.asked == [{"X-Api-Key": "first-key"}]
    stored = Credential.objects.get()
    assert "Fake is connected." in text(response)
    assert "Replace the organization" in text(browser.get(path))

    browser.post(path, {"apiKey": "second-key"}, follow=True)
    assert Credential.objects.get().sealed != stored.sealed

    response = browser.post(f"{path}/disconnect", {}, follow=True)
    assert notices(response) == ["Fake is disconnected."]
    assert not Credential.objects.exists()
    assert browser.post(f"{path}/disconnect", {}).status_code == 404


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_not_stored(site: Site, status: int) -> None:
    site.vendor_status = status
    response = site.owner().post(site.path("credentials:connection", "fake"), {"apiKey": "a-wrong-key"})
    assert response.status_code == 422
    assert f"Fake rejected these credentials ({status}). Nothing was saved." in text(response)
    assert "a-wrong-key" not in text(response)
    assert not Credential.objects.exists()


@pytest.mark.parametrize("status", [None, 503])
def test_a_key_that_nobody_could_check_is_stored_and_marked(site: Site, status: int | None) -> None:
    site.vendor_status = status
    response = site.owner().post(site.path("credentials:connection", "fake"), {"apiKey": "a-key"}, follow=True)
    assert "couldn’t verify" in notices(response)[0]
    assert Credential.objects.get().validated_at is None
    assert "Not verified" in text(response)


@pytest.mark.parametrize(
    ("key", "message"),
    [("", "This field is required."), ("two\nlines-of-key", "line"), ("x" * 9000, "Ensure this value has at most")],
)
def test_a_fault_is_shown_beside_its_field(site: Site, key: str, message: str) -> None:
    response = site.owner().post(site.path("credentials:connection", "fake"), {"apiKey": key})
    assert response.status_code == 422
    page = text(response)
    assert message in "".join(response.context["form"].errors["apiKey"])
    assert '<a href="#id_apiKey">API key</a>' in page
    assert 'id="id_apiKey_error"' in page
    assert not key or key not in page
    assert not site.asked
    assert not Credential.objects.exists()


@pytest.mark.parametrize(
    "form",
    [
        {"name": ""},
        {"name": "bot", "expires_in_days": "0"},
        {"name": "bot"},
        {**NEW_AGENT, "access": "some"},
        {**NEW_AGENT, "access": "chosen"},
        {**NEW_AGENT, "access": "chosen", "vendors": "fake"},
        {**NEW_AGENT, "mcp_client": "abacus"},
    ],
)
def test_a_service_client_with_a_fault_is_not_created(site: Site, form: dict[str, str]) -> None:
    browser, path = site.owner(), site.path("oauth_pages:service-client-new")
    form_key = hidden(browser.get(path), "form_key")
    response = browser.post(path, {**form, "form_key": form_key})
    assert response.status_code == 422
    assert response.context["form"].errors
    assert Client.objects.count() == 1
    response = browser.post(path, {**NEW_AGENT, "form_key": hidden(response, "form_key")})
    assert response.status_code == 201


def test_a_service_client_is_deleted(site: Site) -> None:
    browser, path = site.owner(), site.client_path("service-client-delete")
    assert f"{key_prefix(site.tenant.client)}…" in text(browser.get(path))
    response = browser.post(path, follow=True)
    assert notices(response) == ["build bot was deleted. Its key and tokens no longer work."]
    assert not Client.objects.exists()


@pytest.mark.parametrize("page", ["service-client-delete", "agent-key"])
@pytest.mark.parametrize("typed", ["", "Build Bot", "build bot "])
def test_what_ran_within_a_day_needs_its_name(site: Site, page: str, typed: str) -> None:
    client = site.tenant.client
    prefix = key_prefix(client)
    client.last_used_at = clock.now() - timedelta(hours=1)
    client.save()
    browser, path = site.owner(), site.client_path(page)
    form = browser.get(path)
    assert 'data-confirm-text="build bot"' in text(form)
    data = {"typed_name": typed, "action": "revoke"} | (
        {"form_key": hidden(form, "form_key")} if page == "agent-key" else {}
    )
    response = browser.post(path, data)
    if typed.strip() == "build bot":
        assert response.status_code == 302
        assert key_prefix(client) is None
    else:
        assert response.status_code == 422
        assert "Type build bot to confirm" in text(response)
        assert key_prefix(client) == prefix


def test_a_key_is_revoked(site: Site) -> None:
    browser, path = site.owner(), site.client_path("agent-key")
    form = browser.get(path, {"revoke": "1"})
    assert "Revoke agent key" in text(form)
    response = browser.post(path, {"action": hidden(form, "action"), "form_key": hidden(form, "form_key")}, follow=True)
    assert notices(response) == ["The agent key of build bot no longer works."]
    assert key_prefix(site.tenant.client) is None


@pytest.mark.parametrize("token", [None, "", "wrong", "x" * 64])
@pytest.mark.parametrize("page", ["/welcome", "/profile", "clients", "connection"])
def test_a_form_without_its_token_does_nothing(site: Site, page: str, token: str | None) -> None:
    browser = strict(site)
    paths = {
        "clients": site.path("oauth_pages:service-client-new"),
        "connection": site.path("credentials:connection", "fake"),
    }
    path = paths.get(page, page)
    browser.get(path)  # a browser with the cookie, but without the form's value
    data = {**NEW_AGENT, "name": "intruder", "display_name": "intruder", "apiKey": "x"}
    response = browser.post(path, data if token is None else {**data, TOKEN: token})
    assert response.status_code == 403
    assert "This form has expired." in text(response)
    assert not site.asked
    assert not Organization.objects.filter(name="intruder").exists()
    assert Client.objects.count() == 1


def test_a_form_with_its_token_works(site: Site) -> None:
    browser = strict(site)
    token = hidden(browser.get("/welcome"), TOKEN)
    assert browser.post("/welcome", {"name": "Initech", TOKEN: token}).status_code == 302
    assert Organization.objects.filter(name="Initech").exists()


def test_signing_out_by_the_menu(site: Site) -> None:
    browser = strict(site)
    page = browser.get("/profile")
    assert 'action="/oidc/logout/"' in text(page)
    assert browser.post("/oidc/logout/", {TOKEN: hidden(page, TOKEN)}).status_code == 302
    assert browser.get("/profile").status_code == 302


@pytest.mark.parametrize("page", ["organization-delete", "member-owner", "member-role"])
def test_a_refused_confirmation_links_its_faults_to_what_is_on_the_page(site: Site, page: str) -> None:
    people = [str(site.cast.user("member").id)] if page.startswith("member") else []
    refused = site.owner().post(site.path(f"orgs:{page}", *people), {})
    assert refused.status_code == 422
    faulty = re.findall(r'<li><a href="#([^"]+)"', text(refused))
    assert len(faulty) == len(refused.context["form"].errors)
    assert all(f'id="{name}"' in text(refused) for name in faulty)


def test_a_client_that_is_gone_is_no_fault_of_the_form(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(**_: object) -> None:
        raise NotFound

    monkeypatch.setattr("oauth_ext.pages.service_client_keys.delete_service_client", gone)
    assert site.owner().post(site.client_path("service-client-delete")).status_code == 404
    assert Client.objects.exists()


def test_a_store_that_is_away_after_the_change_is_no_fault_of_the_form(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form with a new key would invite a second submit of what may have been done."""

    def away(**_: object) -> None:
        raise CoordinationUnavailable("test")

    monkeypatch.setattr("oauth_ext.pages.service_client_keys.delete_service_client", away)
    answer = site.owner().post(site.client_path("service-client-delete"))
    assert answer.status_code == 503

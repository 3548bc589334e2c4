"""The page of one service client: what it shows, and the form that stores, replaces and deletes its credentials."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client as Browser

from audit.models import AdminAuditEntry
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.selectors import vendors_at
from gateway.lib import clock
from oauth_ext.models import Client
from oauth_ext.services.service_client_vendors import replace_client_vendors
from oauth_ext.services.service_clients import create_service_client
from tests.api.pages.conftest import Site, hidden, key_prefix, notices, text
from tests.api.pages.test_markup import Strict
from tests.factories.tenant import connect, load_vendor, make_tenant

SECRET = "key-nobody-may-read"
TOKEN = "csrfmiddlewaretoken"


def service_client(site: Site) -> str:
    """The address of the service client's access, as links name it."""
    return site.path("oauth_pages:service-client-access", site.tenant.client.client_id)


def settings_page(site: Site) -> str:
    return site.path("oauth_pages:service-client-settings", site.tenant.client.client_id)


def by_id(site: Site, address: str) -> str:
    """The same address with the service client's id."""
    return address.replace(site.tenant.client.client_id, str(site.tenant.client.id))


def form(site: Site, vendor: str = "fake") -> str:
    """The address of its form for a vendor."""
    return site.path("credentials:service-client-credential", site.tenant.client.client_id, vendor)


def chooser(site: Site) -> str:
    """Where the choice of a vendor leads."""
    return site.path("credentials:service-client-credentials", site.tenant.client.client_id)


def test_credentials_are_stored_replaced_and_deleted(site: Site) -> None:
    browser = site.cast.client("admin")
    response = browser.post(form(site), {"apiKey": f" {SECRET} "}, follow=True)
    assert response.redirect_chain == [(by_id(site, service_client(site)), 302)]
    assert notices(response)[0] == f"The Fake credentials for {site.tenant.client.name} are saved and verified."
    assert site.asked == [{"X-Api-Key": SECRET}]
    stored = Credential.objects.get()
    assert (stored.scope, stored.service_client_id) == ("service_client", site.tenant.client.id)
    assert (stored.organization_id, stored.team_id) == (site.cast.org.id, None)
    page = text(browser.get(form(site)))
    assert "Replace the agent" in page
    assert 'type="password"' in page
    browser.post(form(site), {"apiKey": "another"}, follow=True)
    assert Credential.objects.get().revision == 2
    response = browser.post(f"{form(site)}/delete", {}, follow=True)
    assert notices(response) == [f"The Fake credentials of {site.tenant.client.name} were deleted."]
    assert not Credential.objects.exists()
    assert browser.post(f"{form(site)}/delete", {}).status_code == 404
    events = AdminAuditEntry.objects.filter(event_type__startswith="credential.").order_by("timestamp", "id")
    assert [event.event_type.partition(".")[2] for event in events] == ["created", "replaced", "deleted"]
    assert {event.actor_id for event in events} == {str(site.cast.user("admin").id)}
    assert {event.org_id for event in events} == {site.cast.org.id}


def test_no_page_shows_what_is_stored(site: Site) -> None:
    site.owner().post(form(site), {"apiKey": SECRET})
    for address in (form(site), service_client(site), site.path("oauth_pages:service-clients")):
        page = text(site.owner().get(address))
        assert SECRET not in page
        assert site.tenant.agent_key not in page
        assert site.tenant.client_secret not in page


@pytest.mark.parametrize(
    ("status", "key", "shown"),
    [
        (401, "a-wrong-key", "Fake rejected these credentials (401). Nothing was saved."),
        (200, "", "This field is required."),
        (200, "two\nlines-of-key", "line"),
    ],
)
def test_what_is_refused_is_not_stored_nor_shown(site: Site, status: int, key: str, shown: str) -> None:
    site.vendor_status = status
    response = site.owner().post(form(site), {"apiKey": key})
    assert response.status_code == 422
    assert shown in text(response)
    assert not key or key not in text(response)
    assert not Credential.objects.exists()


def test_a_key_that_nobody_could_check_is_stored_and_marked(site: Site) -> None:
    site.vendor_status = None
    response = site.owner().post(form(site), {"apiKey": SECRET}, follow=True)
    assert "couldn’t verify" in notices(response)[0]
    assert "not yet" in text(response)


REFUSED = {"member": 403, "other_owner": 404, "stranger": 404, "nobody": 302}


@pytest.mark.parametrize("who", REFUSED)
def test_others_neither_see_nor_change_them(site: Site, who: str) -> None:
    site.owner().post(form(site), {"apiKey": SECRET})
    browser = site.cast.client(who)
    for address in (service_client(site), form(site), chooser(site)):
        assert browser.get(address, {"vendor": "fake"}).status_code == REFUSED[who]
    for address in (form(site), f"{form(site)}/delete"):
        assert browser.post(address, {"apiKey": "intruder"}).status_code == REFUSED[who]
    assert Credential.objects.get().revision == 1
    assert len(site.asked) == 1


def test_a_service_client_of_another_organization_is_not_there(site: Site) -> None:
    site.owner().post(form(site), {"apiKey": SECRET})
    browser = site.cast.client("other_owner")
    mine, theirs = str(site.cast.org.id), str(site.cast.other_org.id)
    for address in (service_client(site), form(site), chooser(site)):
        assert browser.get(address.replace(mine, theirs), {"vendor": "fake"}).status_code == 404
    for address in (form(site), f"{form(site)}/delete"):
        assert browser.post(address.replace(mine, theirs), {"apiKey": "intruder"}).status_code == 404
    assert site.owner().get(form(site, "nothing")).status_code == 404
    client = site.tenant.client.id
    assert vendors_at(site.cast.org, CredentialScope.SERVICE_CLIENT, service_client_id=client) == ["fake"]
    assert len(site.asked) == 1


def test_a_form_without_its_token_does_nothing(site: Site) -> None:
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(site.cast.user("owner"), backend="orgs.signin.backend.IdentityBackend")
    token = hidden(browser.get(form(site)), TOKEN)
    assert browser.post(form(site), {"apiKey": SECRET}).status_code == 403
    assert not Credential.objects.exists()
    assert not site.asked
    assert browser.post(form(site), {"apiKey": SECRET, TOKEN: token}).status_code == 302
    assert browser.post(f"{form(site)}/delete", {}).status_code == 403
    assert Credential.objects.exists()


@pytest.mark.usefixtures("lapsed")
def test_it_needs_no_plan_as_over_the_api(site: Site) -> None:
    assert site.owner().post(form(site), {"apiKey": SECRET}).status_code == 302
    assert site.owner().post(f"{form(site)}/delete", {}).status_code == 302


def test_the_form_is_reached_from_the_list_by_way_of_the_service_client(site: Site) -> None:
    browser = site.owner()
    own = site.path("oauth_pages:service-client", site.tenant.client.client_id)
    assert f'href="{own}"' in text(browser.get(site.path("oauth_pages:service-clients")))
    assert f'href="{service_client(site)}"' in text(browser.get(own))
    assert chooser(site) in text(browser.get(service_client(site)))
    assert browser.get(chooser(site), {"vendor": "fake"})["Location"] == by_id(site, form(site))
    for vendor in ("", "nothing", "//evil.example"):
        answer = browser.get(chooser(site), {"vendor": vendor}, follow=True)
        assert answer.redirect_chain == [(by_id(site, service_client(site)), 302)]
        assert notices(answer) == ["Choose a vendor first."]
    for address in (service_client(site), form(site)):
        page = Strict(text(browser.get(address)))
        assert not page.inline
        assert all(field.get("id") in page.label_targets for field in page.fields)


def test_the_list_names_vendors_of_each_service_client_alone(site: Site) -> None:
    load_vendor("http://127.0.0.1:9/mcp", slug="other")
    second = make_tenant(site.cast.org, site.cast.user("owner"), name="Second")
    site.owner().post(form(site), {"apiKey": SECRET})
    other = site.path("credentials:service-client-credential", str(second.client.id), "other")
    site.owner().post(other, {"apiKey": SECRET})
    found = site.owner().get(site.path("oauth_pages:service-clients")).context["clients"]
    by_client = {each["client"].id: each["own"] for each in found}
    assert by_client == {site.tenant.client.id: ["Fake"], second.client.id: ["Other"]}
    held = site.owner().get(service_client(site)).context["held"]
    assert [each["name"] for each in held] == ["Fake"]
    of_second = site.path("credentials:service-client-credential", str(second.client.id), "fake")
    assert site.owner().get(of_second).context["stored"] is None
    assert site.owner().get(form(site)).context["stored"] is not None
    assert site.owner().post(f"{of_second}/delete", {}).status_code == 404
    foreign = site.cast.client("other_owner").get(
        site.path("oauth_pages:service-clients").replace(str(site.cast.org.id), str(site.cast.other_org.id))
    )
    assert foreign.context["clients"] == []


def test_the_page_says_which_vendors_the_service_client_may_use(site: Site) -> None:
    load_vendor("http://127.0.0.1:9/mcp", slug="other")
    for slug in ("fake", "other"):
        connect(site.cast.org, site.cast.user("owner"), slug)
    own = site.path("oauth_pages:service-client", site.tenant.client.client_id)
    assert "All connected vendors: Fake, Other." in text(site.owner().get(own))
    replace_client_vendors(
        actor=site.cast.user("owner"),
        organization=site.cast.org,
        client=site.tenant.client,
        vendors=["other"],
    )
    assert "Only Other." in text(site.owner().get(own))
    replace_client_vendors(
        actor=site.cast.user("owner"), organization=site.cast.org, client=site.tenant.client, vendors=[]
    )
    assert "No vendors." in text(site.owner().get(own))


def test_what_the_deletion_leads_to_is_said(site: Site) -> None:
    site.owner().post(form(site), {"apiKey": SECRET})
    assert "calls to Fake will fail immediately." in text(site.owner().get(form(site)))
    connect(site.cast.org, site.cast.user("owner"))
    assert "uses the shared credentials" in text(site.owner().get(form(site)))


def test_buttons_for_the_key_are_those_that_work(site: Site) -> None:
    def buttons() -> tuple[bool, bool]:
        page = text(site.owner().get(settings_page(site)))
        key = site.path("oauth_pages:agent-key", site.tenant.client.client_id)
        return f'href="{key}"' in page, f'href="{key}?revoke=1"' in page

    assert f"<code>{key_prefix(site.tenant.client)}…</code>" in text(site.owner().get(settings_page(site)))
    assert buttons() == (True, True)
    Client.objects.filter(pk=site.tenant.client.pk).update(expires_at=clock.now() - timedelta(days=1))
    assert "no longer works" in text(site.owner().get(settings_page(site)))
    assert buttons() == (False, True)
    form_key = hidden(site.owner().get(site.client_path("agent-key") + "?revoke=1"), "form_key")
    assert (
        site.owner().post(site.client_path("agent-key"), {"action": "revoke", "form_key": form_key}).status_code == 302
    )
    assert buttons() == (False, False)
    Client.objects.filter(pk=site.tenant.client.pk).update(expires_at=clock.now() + timedelta(days=1))
    assert buttons() == (True, False)


def test_every_service_client_is_on_some_page(site: Site) -> None:
    for number in range(51):
        create_service_client(actor=site.cast.user("owner"), organization=site.cast.org, name=f"Robot {number:02}")
    browser, path = site.owner(), f"/orgs/{site.cast.org.id}/agents"
    pages = [browser.get(path, {"page": number}) for number in (1, 2)]
    names = [each["client"].name for page in pages for each in page.context["clients"]]
    assert {f"Robot {number:02}" for number in range(51)} <= set(names)
    assert (len(pages[0].context["clients"]), len(set(names))) == (50, len(names))

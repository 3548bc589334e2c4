"""The short list of tools as a setting of an agent, on its settings page and on the page for a new one."""

from __future__ import annotations

import pytest

from oauth_ext.models import Client
from tests.api.pages.conftest import Site, notices, text


def settings_path(site: Site) -> str:
    return site.path("oauth_pages:service-client-settings", site.tenant.client.client_id)


def is_compact(site: Site) -> bool:
    return Client.objects.get(pk=site.tenant.client.pk).lists_compactly


def test_the_button_changes_the_list(site: Site) -> None:
    browser, path, name = site.cast.client("admin"), settings_path(site), site.tenant.client.name
    assert "Shows all its tools" in text(browser.get(path))
    answer = browser.post(path, {"action": "list", "list": "compact"}, follow=True)
    assert notices(answer) == [f"{name} now gets three tools instead of all."]
    assert "Shows three tools instead of all" in text(answer)
    assert is_compact(site)
    answer = browser.post(path, {"action": "list", "list": "all"}, follow=True)
    assert notices(answer) == [f"{name} now gets all its tools."]
    assert not is_compact(site)


@pytest.mark.parametrize(("who", "status"), [("member", 403), ("other_owner", 404)])
def test_others_change_nothing(site: Site, who: str, status: int) -> None:
    answer = site.cast.client(who).post(settings_path(site), {"action": "list", "list": "compact"})
    assert (answer.status_code, is_compact(site)) == (status, False)


@pytest.mark.parametrize("ticked", [False, True])
def test_a_new_agent_has_the_chosen_list(site: Site, ticked: bool) -> None:
    browser, path = site.cast.client("admin"), site.path("oauth_pages:service-client-new")
    page = browser.get(path)
    sent = {
        "form_key": page.context["form_key"],
        "name": "Fresh bot",
        "access": "all",
        "expires_in_days": "30",
        "mcp_client": page.context["form"]["mcp_client"].value(),
        **({"compact_list": "on"} if ticked else {}),
    }
    assert browser.post(path, sent).status_code == 201
    assert Client.objects.get(name="Fresh bot").lists_compactly is ticked

"""Former addresses lead to the pages that took their place."""

from __future__ import annotations

import pytest

from tests.api.pages.conftest import Site

MOVED = {
    "connections": "vendors",
    "connections/fake": "vendors/fake/settings",
    "health": "vendors",
    "tools": "vendors",
    "tools/fake": "vendors/fake/tools",
    "members": "people",
    "service-accounts": "agents",
    "audit": "activity",
    "audit/admin": "activity/changes",
    "usage": "activity/usage",
    "log-shipping": "activity/log-shipping",
}


@pytest.mark.parametrize("old", MOVED)
def test_a_former_address_leads_to_the_page(site: Site, old: str) -> None:
    begin = f"/orgs/{site.cast.org.id}"
    response = site.owner().get(f"{begin}/{old}?q=a%20b")
    assert (response.status_code, response["Location"]) == (301, f"{begin}/{MOVED[old]}?q=a%20b")
    assert site.owner().get(response["Location"]).status_code == 200


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("/agent-key", "/agent-key"),
        ("/delete", "/delete"),
        ("/credentials/fake", "/credentials/fake"),
        ("/tools/fake", "/tools/fake"),
    ],
)
def test_a_former_address_of_an_agent_leads_to_the_page(site: Site, old: str, new: str) -> None:
    begin, client_id = f"/orgs/{site.cast.org.id}", site.tenant.client.client_id
    response = site.owner().get(f"{begin}/service-accounts/{client_id}{old}")
    assert (response.status_code, response["Location"]) == (301, f"{begin}/agents/{client_id}{new}")
    assert site.owner().get(response["Location"]).status_code == 200


def test_a_form_is_sent_again(site: Site) -> None:
    begin = f"/orgs/{site.cast.org.id}"
    response = site.owner().post(f"{begin}/connections/fake", {"apiKey": "x"})
    assert (response.status_code, response["Location"]) == (308, f"{begin}/vendors/fake/settings")


def test_the_new_address_decides_who_may_read(site: Site) -> None:
    begin = f"/orgs/{site.cast.org.id}"
    stranger = site.cast.client("stranger")
    assert stranger.get(f"{begin}/connections").status_code == 301
    assert stranger.get(f"{begin}/vendors").status_code == 404

"""A vendor that is connected on its page is asked for its tools at once; a refusal or silence is said."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from credentials.models import Credential
from orgs.models import KnownTool
from proxy.control_plane import connect_vendor
from proxy.vendors import credential_probe, dns
from tests.api.pages.conftest import Site, notices, text
from tests.factories.tenant import connect, load_vendor
from tests.fakes.vendor import FakeVendor

probe_credentials = credential_probe.probe_credentials


def store(site: Site, key: str = "right-key") -> Any:
    return site.cast.client("admin").post(site.path("credentials:connection", "fake"), {"apiKey": key}, follow=True)


def known(site: Site) -> int:
    assert not KnownTool.objects.filter(organization=site.cast.other_org).exists()
    return KnownTool.objects.filter(organization=site.cast.org).count()


def test_its_tools_are_known_at_once(site: Site, live_vendor: FakeVendor) -> None:
    assert notices(store(site)) == ["Fake is connected. 3 tools found."]
    assert known(site) == 3
    page = text(site.cast.client("admin").get(site.path("proxy_pages:vendor", "fake")))
    assert "All 3 tools are allowed for your role." in page
    tools = text(site.cast.client("admin").get(site.path("proxy_pages:tool-access", "fake")))
    assert "never checked" not in tools
    assert live_vendor.seen["tools/list"] == 1


def test_a_named_key_and_a_team_have_lists_of_their_own(site: Site, live_vendor: FakeVendor) -> None:
    store(site)
    path = site.path("credentials:key-new", "fake")
    form = {"apiKey": "right-key", "key_name": "EU", "key_team": ""}
    assert notices(site.cast.client("admin").post(path, form, follow=True)) == [
        "The key is saved and verified. 3 tools found."
    ]
    assert known(site) == 3, "the same tools count once"


def test_a_vendor_that_lists_nothing_is_connected_all_the_same(site: Site, live_vendor: FakeVendor) -> None:
    done, problem = notices(store(site, "another-key"))
    assert done == "Fake is connected."
    assert problem == (
        "Its tools couldn’t be loaded: The vendor rejected the stored credentials. An admin can replace them. "
        "You can refresh them on its “Tools” page."
    )
    assert known(site) == 0
    assert Credential.objects.get(organization=site.cast.org).validated_at is not None


def test_a_slow_list_ends_with_its_deadline(
    site: Site, live_vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect_vendor, "LISTED_WITHIN_S", 0.2)
    live_vendor.list_delay_s = 5
    assert notices(store(site))[1].startswith("Its tools couldn’t be loaded: The vendor didn’t respond in time.")


def test_credentials_that_were_not_confirmed_ask_for_no_tools(site: Site, live_vendor: FakeVendor) -> None:
    site.vendor_status = 503
    assert notices(store(site)) == ["Fake is saved, but we couldn’t verify it: The vendor answered 503."]
    assert live_vendor.seen.total() == 0


def test_checking_again_loads_the_tools(site: Site, live_vendor: FakeVendor) -> None:
    row = connect(site.cast.org, site.cast.user("owner"))
    checked = site.cast.client("admin").post(site.path("credentials:check", str(row.id)), follow=True)
    assert notices(checked) == ["Fake (Organization): The vendor accepted the credentials."]
    assert known(site) == 3


def test_an_unknown_host_is_named_as_such(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, host)

    monkeypatch.setattr(dns, "lookup", lookup)
    monkeypatch.setattr(credential_probe, "probe_credentials", probe_credentials)
    load_vendor("http://vendor.nowhere.example/mcp")
    assert notices(store(site)) == ["Fake is saved, but we couldn’t verify it: The vendor’s host name was not found."]

"""Test connection: each connected vendor's answer to the reader's own credentials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import reverse

from audit.models import RequestAuditEntry
from tests.api.pages.conftest import text
from tests.factories.cast import Cast
from tests.factories.live_vendor import vendor_in_thread
from tests.factories.tenant import make_connected_tenant
from tests.fakes.vendor import FakeVendor


@pytest.fixture
def vendor(committed_cast: Cast) -> Iterator[FakeVendor]:
    """`fake`, connected in the first organization."""
    with vendor_in_thread() as running:
        committed_cast.org.default_server_access = "all"
        committed_cast.org.save()
        make_connected_tenant(committed_cast.org, committed_cast.user("owner"), running.url)
        yield running


def connection_test(cast: Cast, who: str, *, method: str = "post", org: Any = None, **form: str) -> Any:
    address = reverse("proxy_pages:connection-test", args=[(org or cast.org).id])
    headers = {"HX-Request": "true"} if form.pop("htmx", "") else {}
    return getattr(cast.client(who), method)(address, form, headers=headers)


def test_a_get_asks_nobody(committed_cast: Cast, vendor: FakeVendor) -> None:
    assert "Fake" in text(connection_test(committed_cast, "member", method="get"))
    assert vendor.seen["tools/list"] == 0


@pytest.mark.parametrize("who", ["owner", "member"])
def test_a_working_vendor_says_how_many_tools(committed_cast: Cast, vendor: FakeVendor, who: str) -> None:
    assert "You can call 3 of 3 tools." in text(connection_test(committed_cast, who))
    assert vendor.seen["tools/list"] == 1
    assert not RequestAuditEntry.objects.exists(), "a list is no call"


def test_one_vendor_is_a_part_for_scripts(committed_cast: Cast, vendor: FakeVendor) -> None:
    part = text(connection_test(committed_cast, "owner", vendor="fake", htmx="yes"))
    assert part.startswith("<li")
    assert "You can call 3 of 3 tools." in part


def test_no_access_is_a_refusal_that_names_who_can_help(committed_cast: Cast, vendor: FakeVendor) -> None:
    committed_cast.org.default_server_access = "none"
    committed_cast.org.save()
    page = text(connection_test(committed_cast, "member"))
    assert "Member has no access to Fake" in page
    assert "Admins: Owner, Admin." in page
    assert vendor.seen["tools/list"] == 0


def test_rejected_credentials_say_who_can_replace_them(committed_cast: Cast, vendor: FakeVendor) -> None:
    vendor.api_key = "another-key"
    page = text(connection_test(committed_cast, "member"))
    assert "Fake rejected the credentials" in page
    assert "An admin can replace the credentials. Admins: Owner, Admin." in page


@pytest.mark.parametrize("who", ["other_owner", "stranger", "nobody"])
def test_other_people_test_nothing(committed_cast: Cast, vendor: FakeVendor, who: str) -> None:
    assert connection_test(committed_cast, who).status_code == (302 if who == "nobody" else 404)
    assert vendor.seen["tools/list"] == 0


def test_a_vendor_of_another_organization_is_not_found(committed_cast: Cast, vendor: FakeVendor) -> None:
    assert (
        connection_test(committed_cast, "other_owner", org=committed_cast.other_org, vendor="fake").status_code == 404
    )
    assert vendor.seen["tools/list"] == 0


@pytest.mark.django_db
def test_without_a_vendor_a_script_gets_a_page(cast: Cast) -> None:
    assert "No vendor is connected" in text(connection_test(cast, "member", htmx="1"))

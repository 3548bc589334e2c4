"""The catalog in the staff pages: support may look and search, nobody may change."""

from __future__ import annotations

import pytest
from django.contrib.admin.sites import AdminSite
from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory

from gateway.catalog.admin import VendorRowAdmin
from gateway.catalog.models import VendorRow
from tests.factories.catalog_text import load_catalog

TEXT = """
[[vendor]]
slug = "acme"
name = "Acme RMM"
url = "https://acme.example/mcp"
category = "Monitoring"
[[vendor]]
slug = "other"
name = "Other"
url = "https://other.example/mcp"
"""


@pytest.fixture
def staff(db: None) -> VendorRowAdmin:
    """The staff page over two vendors."""
    load_catalog(TEXT, "test.toml")
    return VendorRowAdmin(VendorRow, AdminSite())


@pytest.mark.parametrize(
    ("words", "found"), [("ACME", ["acme"]), ("rmm", ["acme"]), ("monitoring", ["acme"]), ("other.example", ["other"])]
)
def test_vendors_are_found_by_what_people_remember(staff: VendorRowAdmin, words: str, found: list[str]) -> None:
    rows, _ = staff.get_search_results(RequestFactory().get("/"), VendorRow.objects.all(), words)
    assert list(rows.values_list("slug", flat=True)) == found


def test_nothing_is_found_for_nonsense(staff: VendorRowAdmin) -> None:
    rows, _ = staff.get_search_results(RequestFactory().get("/"), VendorRow.objects.all(), "nonsense")
    assert not rows.exists()


def test_the_columns_tell_the_vendor(staff: VendorRowAdmin) -> None:
    row = VendorRow.objects.get(slug="acme")
    assert (staff.vendor_name(row), staff.category(row), staff.url(row)) == (
        "Acme RMM",
        "Monitoring",
        "https://acme.example/mcp",
    )
    assert str(row) == "acme"


def test_nobody_may_change_a_vendor(staff: VendorRowAdmin) -> None:
    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    row = VendorRow.objects.get(slug="acme")
    assert not staff.has_add_permission(request)
    assert not staff.has_change_permission(request, row)
    assert not staff.has_delete_permission(request, row)
    assert not staff.has_view_permission(request, row)

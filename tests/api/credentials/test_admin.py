"""The support list: found by name, never changed, never opened."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from credentials.credential_scope import TYPED_SCOPES, CredentialScope
from credentials.models import Credential, OrganizationDataKey
from tests.api.credentials.test_leaks import leaks
from tests.factories.credentials import Setting

LIST = "admin:credentials_credential_changelist"


@pytest.fixture
def staff(setting: Setting) -> Setting:
    """The setting with its stranger a superuser."""
    employee = setting.cast.user("stranger")
    employee.is_staff = employee.is_superuser = True
    employee.save()
    setting.store_everywhere()
    return setting


def pages(setting: Setting) -> list[str]:
    """Addresses of the list, a search, and every row's page and history."""
    rows = [
        reverse(f"admin:credentials_credential_{page}", args=[row.pk])
        for row in Credential.objects.all()
        for page in ("change", "history")
    ]
    return [reverse(LIST), f"{reverse(LIST)}?q=acme&scope__exact=team", *rows]


def test_staff_find_and_read_without_content(staff: Setting) -> None:
    browser = staff.cast.client("stranger")
    sealed = [bytes(row.sealed) for row in Credential.objects.all()]
    for page in pages(staff):
        response = browser.get(page)
        assert response.status_code == 200, page
        assert not leaks(response.content)
        assert not any(
            part.hex().encode() in response.content or repr(part).encode() in response.content for part in sealed
        )
    listed = browser.get(reverse(LIST), {"q": "night shift"}).content.decode()
    assert "1 credential" in listed
    assert "Night shift" in listed


def test_the_sealed_column_is_not_even_read(staff: Setting) -> None:
    browser = staff.cast.client("stranger")
    addresses = pages(staff)
    with CaptureQueriesContext(connection) as queries:
        for page in addresses:
            browser.get(page)
    assert len(queries) > len(addresses)
    assert not any("sealed" in query["sql"] for query in queries)


@pytest.mark.parametrize("superuser", [False, True])
def test_nobody_adds_changes_or_deletes(staff: Setting, superuser: bool) -> None:
    employee = staff.cast.user("stranger")
    employee.is_superuser = superuser
    employee.save()
    browser = staff.cast.client("stranger")
    row = Credential.objects.filter(scope=CredentialScope.TEAM.value).values().get()
    change = reverse("admin:credentials_credential_change", args=[row["id"]])
    assert browser.get(reverse("admin:credentials_credential_add")).status_code == 403
    assert browser.post(change, {"vendor": "globex"}).status_code == 403
    assert (
        browser.post(reverse("admin:credentials_credential_delete", args=[row["id"]]), {"post": "yes"}).status_code
        == 403
    )
    browser.post(reverse(LIST), {"action": "delete_selected", "_selected_action": [str(row["id"])], "post": "yes"})
    assert Credential.objects.filter(pk=row["id"]).values().get() == row
    assert Credential.objects.count() == len(TYPED_SCOPES)


@pytest.mark.parametrize(("who", "status"), [("owner", 302), ("nobody", 302)])
def test_customers_do_not_get_in(staff: Setting, who: str, status: int) -> None:
    assert staff.cast.client(who).get(reverse(LIST)).status_code == status


def test_staff_who_are_no_superusers_see_nothing(staff: Setting) -> None:
    employee = staff.cast.user("stranger")
    employee.is_superuser = False
    employee.save()
    employee.user_permissions.add(Permission.objects.get(codename="view_credential"))
    assert staff.cast.client("stranger").get(reverse(LIST)).status_code == 403


def test_a_data_key_is_listed_by_what_wraps_it_and_never_read(staff: Setting) -> None:
    employee = staff.cast.user("stranger")
    employee.is_superuser = True
    employee.save()
    browser = staff.cast.client("stranger")
    key = OrganizationDataKey.objects.order_by("pk").first()
    assert key is not None
    for address in (
        reverse("admin:credentials_organizationdatakey_changelist"),
        reverse("admin:credentials_organizationdatakey_change", args=[key.pk]),
    ):
        with CaptureQueriesContext(connection) as queries:
            content = browser.get(address).content.decode()
        assert key.key_id in content
        assert not [query for query in queries if "wrapped_key" in query["sql"]]
        assert bytes(key.wrapped_key).hex() not in content

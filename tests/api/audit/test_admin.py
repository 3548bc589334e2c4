"""The staff's view of both logs: read, search, nothing else."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db import transaction
from django.test import RequestFactory

from audit.actor import Actor
from audit.admin import AdminAuditAdmin, CappedPaginator, RequestAuditAdmin
from audit.admin_log import record_admin
from audit.event_types import EventType
from audit.models import AdminAuditEntry, RequestAuditEntry
from tests.api.audit.rows import ORG, OTHER_ORG, add_row

pytestmark = pytest.mark.django_db
PAGES = [(RequestAuditAdmin, RequestAuditEntry), (AdminAuditAdmin, AdminAuditEntry)]


@pytest.fixture
def staff() -> object:
    request = RequestFactory().get("/")
    request.user = get_user_model()(is_staff=True, is_superuser=True, is_active=True)
    return request


@pytest.mark.parametrize(("page_class", "model"), PAGES)
def test_even_a_superuser_may_only_read(page_class: type, model: type, staff: object) -> None:
    page = page_class(model, admin.site)
    assert admin.site.is_registered(model)
    assert page.has_view_permission(staff)
    assert not page.has_add_permission(staff)
    assert not page.has_change_permission(staff)
    assert not page.has_delete_permission(staff)
    assert page.get_actions(staff) == {}


def search(page: admin.ModelAdmin, staff: object, words: str) -> set[object]:  # type: ignore[type-arg]
    rows, _ = page.get_search_results(staff, page.get_queryset(staff), words)  # type: ignore[arg-type]
    return set(rows.values_list("pk", flat=True))


def test_calls_are_found_by_whole_values(staff: object) -> None:
    page = RequestAuditAdmin(RequestAuditEntry, admin.site)
    ours = add_row(request_id="find-me", vendor="globex")
    theirs = add_row(org_id=OTHER_ORG, user_id="user-9")
    assert search(page, staff, "find-me") == {ours.pk}
    assert search(page, staff, "globex") == {ours.pk}
    assert search(page, staff, str(OTHER_ORG)) == {theirs.pk}
    assert search(page, staff, "user-9") == {theirs.pk}
    assert search(page, staff, f"{ORG} user-9") == set()
    assert search(page, staff, "find") == set()


def test_changes_are_found_by_whole_values(staff: object) -> None:
    page = AdminAuditAdmin(AdminAuditEntry, admin.site)
    with transaction.atomic():
        ours = record_admin(EventType.AGENT_KEY_REVOKED, org_id=ORG, actor=Actor("user-1", "Ana"))
        theirs = record_admin(EventType.AGENT_KEY_CREATED, org_id=OTHER_ORG, actor=Actor("user-2", "Bo"))
    assert search(page, staff, "agent_key.revoked") == {ours.pk}
    assert search(page, staff, str(OTHER_ORG)) == {theirs.pk}
    assert search(page, staff, "nobody") == set()


def test_counting_ends_where_nobody_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(4):
        add_row()
    rows = RequestAuditEntry.objects.order_by("-timestamp")
    assert CappedPaginator(rows, 2).count == 4
    monkeypatch.setattr("audit.admin.MAX_COUNTED", 3)
    assert CappedPaginator(rows, 2).count == 3

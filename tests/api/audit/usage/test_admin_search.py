"""Staff find the roll-ups of one organization by its id, and other words as before."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.test import RequestFactory

from audit.models import UsageCount, UsageDay, UsageDuration
from audit.usage.rollup import roll_up
from tests.api.audit.rows import ORG, OTHER_ORG
from tests.api.audit.usage.rows import log_row, store

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", [UsageCount, UsageDuration])
def test_an_organizations_rows_are_found_along_their_ids(model: Any) -> None:
    store(log_row(vendor="acme"), log_row(vendor="globex"), log_row(vendor="acme", org_id=OTHER_ORG))
    roll_up()

    def found(words: str) -> set[tuple[Any, str]]:
        rows, _ = site.get_search_results(request, model.objects.all(), words)
        return set(rows.values_list("org_id", "vendor"))

    site, request = admin.site.get_model_admin(model), RequestFactory().get("/")
    assert found(str(ORG)) == {(ORG, "acme"), (ORG, "globex")}
    assert found(f"{OTHER_ORG} acme") == {(OTHER_ORG, "acme")}
    assert found("acme") == {(ORG, "acme"), (OTHER_ORG, "acme")}
    assert found(f"{OTHER_ORG} globex") == set()
    rows, _ = site.get_search_results(request, model.objects.all(), str(ORG))
    assert ">=" in str(rows.query), "the search reads a range of ids"


def test_the_list_of_days_reads_none_of_their_figures() -> None:
    request = RequestFactory().get("/")
    assert "by_vendor" not in str(admin.site.get_model_admin(UsageDay).get_queryset(request).query)

"""Many who edit one list at once: one saves, and everybody else is told."""

from __future__ import annotations

import pytest

from audit.models import AdminAuditEntry
from orgs.models import ToolAllowlist
from orgs.services.tool_access import clear_allowlist, set_allowlist
from tests.factories.cast import Cast
from tests.factories.catalog import load_vendors
from tests.factories.races import refusals_at_once

EDITORS = 20


@pytest.mark.parametrize("is_first", [True, False])
def test_one_of_many_saves(committed_cast: Cast, is_first: bool) -> None:
    load_vendors("acme")
    where = {
        "actor": committed_cast.user("owner"),
        "organization": committed_cast.org,
        "vendor": "acme",
        "role": "member",
    }
    version = "" if is_first else set_allowlist(tools=["before"], **where).version
    AdminAuditEntry.objects.all().delete()
    saves = [
        lambda number=number: set_allowlist(tools=[f"tool_{number}"], seen_version=version, **where)
        for number in range(EDITORS)
    ]
    codes = refusals_at_once(*saves, lambda: clear_allowlist(seen_version=version or "another", **where))
    assert codes.count("allowlist_changed") == EDITORS
    assert codes.count("") == 1
    assert AdminAuditEntry.objects.count() == 1
    assert ToolAllowlist.objects.count() <= 1

"""Roll-ups end with their organization, however many there are, and those of others stay."""

from __future__ import annotations

import itertools
import uuid
from typing import Any

import pytest

from audit.models import UsageCount, UsageDay, UsageDuration, UsageLabel
from audit.tasks import remove_usage
from audit.usage import ready_days, removal
from audit.usage.parts import groups
from audit.usage.ready_days import make_ready
from audit.usage.removal import remove_usage_of_deleted_organizations
from audit.usage.rollup import roll_up
from gateway.settings import workers
from orgs.services.organizations import delete_organization
from tests.api.audit.usage.rows import log_row, store
from tests.factories.api import Api

MODELS = (UsageCount, UsageDuration, UsageDay, UsageLabel)


def rows_left(api: Api) -> list[tuple[int, int]]:
    """Of the deleted and of the other organization, by table."""
    ids = (api.cast.org.id, api.cast.other_org.id)
    return [tuple(model.objects.filter(org_id=org_id).count() for org_id in ids) for model in MODELS]  # type: ignore[attr-defined, misc]


@pytest.fixture
def deleted(api: Api) -> Api:
    """Two organizations with roll-ups of three tools each; the first is deleted."""
    first, other = api.cast.org.id, api.cast.other_org.id
    store(*(log_row(org_id=org, tool=f"t{number}") for org in (first, other) for number in range(3)))
    roll_up()
    before = rows_left(api)
    assert remove_usage_of_deleted_organizations() == 0
    assert rows_left(api) == before == [(6, 6), (2, 2), (1, 1), (1, 1)]
    delete_organization(actor=api.cast.user("owner"), organization=api.cast.org)
    api.cast.org.id = first  # Django forgets it
    return api


def test_all_rows_of_the_deleted_organization_go_in_batches(deleted: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "BATCH_ROWS", 2)
    assert remove_usage() == 10
    assert rows_left(deleted) == [(0, 6), (0, 2), (0, 1), (0, 1)]
    store(log_row(org_id=deleted.cast.org.id))
    roll_up()
    assert remove_usage() == 6, "of a call that ended after the deletion"
    assert rows_left(deleted) == [(0, 6), (0, 2), (0, 1), (0, 1)]


def test_a_run_ends_in_time_and_the_next_goes_on(deleted: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "BATCH_ROWS", 2)
    readings = itertools.count()
    assert remove_usage_of_deleted_organizations(longest_run_s=3, monotonic=lambda: next(readings)) == 4
    assert remove_usage_of_deleted_organizations() == 6
    assert rows_left(deleted) == [(0, 6), (0, 2), (0, 1), (0, 1)]


def test_figures_that_were_left_without_labels_go_too(deleted: Api) -> None:
    """As a process of the release before leaves them."""
    UsageLabel.objects.all().delete()
    assert remove_usage() == 9
    assert rows_left(deleted) == [(0, 6), (0, 2), (0, 1), (0, 0)]


def test_a_day_that_is_removed_while_it_is_made_does_not_come_back(
    deleted: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def removed(org_id: uuid.UUID, *arguments: Any) -> Any:
        found = groups(org_id, *arguments)
        if org_id == deleted.cast.org.id:
            remove_usage()
        return found

    monkeypatch.setattr(ready_days, "groups", removed)
    assert make_ready() == 2
    assert rows_left(deleted) == [(0, 6), (0, 2), (0, 1), (0, 1)]
    assert [each.org_id for each in UsageDay.objects.exclude(version=None)] == [deleted.cast.other_org.id]


def test_the_task_is_scheduled_by_its_name() -> None:
    assert workers.CELERY_BEAT_SCHEDULE["audit.remove_usage"]["task"] == remove_usage.name

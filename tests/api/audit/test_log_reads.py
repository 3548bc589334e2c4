"""Each organization has a share of the requests for logs and usage that are under way. Spec: §4.10, §4.11"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError
from django.urls import reverse

from gateway.lib.shared_slots import SlotResult
from gateway.web.log_reads import reads
from tests.factories.api import Api

ROUTES = pytest.mark.parametrize(
    "path", ["/audit", "/audit/admin", "/dashboard/usage", "/dashboard/savings", "/dashboard/vendors"]
)
PAGES = pytest.mark.parametrize("name", ["audit_pages:request-log", "audit_pages:admin-log", "audit_pages:usage"])


@pytest.fixture(autouse=True)
def _every_slot_is_given_back() -> Iterator[None]:
    yield
    assert not reads.taken


@pytest.fixture
def _all_of_the_organization(api: Api) -> Iterator[None]:
    """As many requests of the organization as it may have are under way."""
    mine = [api.cast.org.id] * settings.CONCURRENT_LOG_READS_OF_ORGANIZATION
    assert {reads.take(each) for each in mine} == {SlotResult.TAKEN}
    yield
    for each in mine:
        reads.give_back(each)


@ROUTES
@pytest.mark.usefixtures("_all_of_the_organization")
def test_an_organization_has_a_share_and_the_next_has_another(api: Api, path: str) -> None:
    assert api.refused("admin", "GET", path) == (HTTPStatus.TOO_MANY_REQUESTS, "rate_limited")
    answer: Any = api.send("admin", "GET", path)
    assert int(answer["Retry-After"]) == answer.json()["retryAfter"] == 1
    api.get("other_owner", path)
    assert reads.taken[api.cast.org.id] == settings.CONCURRENT_LOG_READS_OF_ORGANIZATION, "refusals take no slot"


@PAGES
@pytest.mark.usefixtures("_all_of_the_organization")
def test_its_pages_are_in_the_share(api: Api, name: str) -> None:
    answer = api.cast.client("admin").get(reverse(name, args=[api.cast.org.id]))
    assert (answer.status_code, answer["Retry-After"]) == (HTTPStatus.TOO_MANY_REQUESTS, "1")
    other = api.cast.client("other_owner").get(reverse(name, args=[api.cast.other_org.id]))
    assert other.status_code == HTTPStatus.OK


@ROUTES
def test_a_process_has_a_bound_of_its_own(api: Api, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "_size", 0)
    assert api.refused("admin", "GET", path) == (HTTPStatus.SERVICE_UNAVAILABLE, "overloaded")
    assert api.send("admin", "GET", path)["Retry-After"] == "1"
    monkeypatch.undo()
    api.get("admin", path)


@pytest.mark.usefixtures("_all_of_the_organization")
def test_an_export_and_a_refused_query_need_no_slot(api: Api) -> None:
    assert api.send("admin", "GET", "/audit?format=csv&limit=1").status_code == HTTPStatus.OK
    assert api.refused("admin", "GET", "/audit?limit=0")[0] == HTTPStatus.BAD_REQUEST
    assert api.refused("member", "GET", "/audit")[0] == HTTPStatus.FORBIDDEN


def test_a_failing_query_gives_the_slot_back(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr("audit.api.logs.page_of", fail)
    assert api.refused("admin", "GET", "/audit") == (HTTPStatus.SERVICE_UNAVAILABLE, "unavailable")
    assert not reads.taken


def test_no_organization_can_hold_the_slots_of_all_pages() -> None:
    assert 0 < settings.CONCURRENT_LOG_READS_OF_ORGANIZATION < settings.CONCURRENT_LOG_READS
    assert settings.CONCURRENT_LOG_READS < settings.PAGE_CONCURRENCY

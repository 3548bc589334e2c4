"""The notice above the pages of signed-in people while an incident touches them: one cached read, no statement."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext

from gateway.coordination import backend
from gateway.coordination.sqlite_store import SQLiteStore
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib import clock
from gateway.status import open_incidents
from gateway.status.incidents import Poster, post_update, publish
from gateway.status.open_incidents import KnownIncidents, OpenIncident
from gateway.status.parts import SIGN_IN, of_vendor
from gateway.status.stages import Kind, Severity, Stage
from gateway.web.incident_notice import MOST_VENDORS
from tests.api.pages.conftest import INERT, SCRIPT, text
from tests.api.pages.test_status_page import posted
from tests.factories.cast import Cast
from tests.factories.health import connected_vendor

STAFF = Poster(id="7", label="Sam Support")
LINK = "Follow it on the status page"


@pytest.fixture(autouse=True)
def _read_each_time(shared: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_incidents, "KEPT_S", 0.0)


def people(cast: Cast) -> str:
    return f"/orgs/{cast.org.id}/people"


def statements(browser: Browser, path: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert browser.get(path).status_code == 200
    return len(captured)


def test_it_is_there_while_the_incident_is_open(cast: Cast) -> None:
    browser = cast.client("member")
    assert LINK not in text(browser.get(people(cast)))
    incident = posted(title=SCRIPT, severity=Severity.CRITICAL, parts=[SIGN_IN])
    publish()
    for path in (people(cast), f"/orgs/{cast.org.id}", "/profile"):
        page = text(browser.get(path))
        assert LINK in page
        assert INERT in page
        assert SCRIPT not in page
        assert f"/status#incident-{incident.pk}" in page
    assert LINK not in text(Browser().get("/")), "strangers are not told on other pages"
    post_update(poster=STAFF, incident_id=incident.pk, stage=Stage.RESOLVED, text="Done.")
    publish()
    assert LINK not in text(browser.get(people(cast)))


def test_an_incident_of_a_vendor_is_told_to_those_who_connected_it(cast: Cast) -> None:
    connected_vendor(cast.org, "alpha")
    posted(title="Alpha is slow", parts=[of_vendor("alpha")])
    publish()
    assert "Alpha is slow" in text(cast.client("member").get(people(cast)))
    assert "Alpha is slow" not in text(cast.client("other_owner").get(f"/orgs/{cast.other_org.id}/people"))
    assert "Alpha is slow" not in text(cast.client("member").get("/profile"))


def test_more_vendors_than_a_statement_asks_for_touch_everyone(cast: Cast) -> None:
    slugs = [f"vendor{number}" for number in range(MOST_VENDORS + 1)]
    for slug in slugs:
        connected_vendor(cast.org, slug)
    posted(title="Many are away", parts=[of_vendor(slug) for slug in slugs])
    publish()
    assert "Many are away" in text(cast.client("other_owner").get(f"/orgs/{cast.other_org.id}/people"))


@pytest.mark.parametrize("parts", [[SIGN_IN], [of_vendor("alpha")]], ids=["everyone", "one vendor"])
def test_no_page_asks_a_statement_more(cast: Cast, parts: list[str]) -> None:
    connected_vendor(cast.org, "alpha")
    browser = cast.client("owner")
    paths = (people(cast), f"/orgs/{cast.org.id}", "/profile")
    for path in paths:
        browser.get(path)
    before = [statements(browser, path) for path in paths]
    posted(title="Open", parts=parts)
    publish()
    assert "Open" in text(browser.get(people(cast)))
    assert [statements(browser, path) for path in paths] == before


def test_maintenance_is_told_from_its_beginning_and_the_worst_comes_first(cast: Cast) -> None:
    now = clock.now()
    posted(
        kind=Kind.MAINTENANCE,
        title="Later",
        severity=Severity.CRITICAL,
        starts_at=now + timedelta(hours=1),
        ends_at=now + timedelta(hours=2),
    )
    posted(title="Small", severity=Severity.MINOR)
    posted(title="Large", severity=Severity.CRITICAL)
    publish()
    page = text(cast.client("member").get(people(cast)))
    assert "Large" in page
    assert "1 more incident is open." in page
    assert "Later" not in page
    assert "Small" not in page


def test_a_store_that_is_away_costs_the_notice_and_no_page(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    posted(title="Unheard")
    publish()

    def away(*names: Any) -> Any:
        raise CoordinationUnavailable("away")

    monkeypatch.setattr(backend.current(), "health", away)
    page = cast.client("member").get(people(cast))
    assert page.status_code == 200
    assert "Unheard" not in text(page)
    monkeypatch.setattr(backend.current(), "put_health", away)
    publish()


def test_a_process_reads_once_in_five_seconds(shared: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_incidents, "KEPT_S", 5.0)
    now, moment = clock.now(), [100.0]
    known = KnownIncidents(monotonic=lambda: moment[0])
    assert known.current(shared, now) == []
    one = OpenIncident("1", "One", "minor", (SIGN_IN,), "investigating", now, is_maintenance=False, starts_at=now)
    open_incidents.publish(shared, [one])
    assert known.current(shared, now) == []
    moment[0] += 5.0
    assert known.current(shared, now) == [one]
    shared.put_health("@incidents", b'[{"id":1}]', 60)
    moment[0] += 5.0
    assert known.current(shared, now) == [], "another release may have written it"

"""The public status page, its JSON and its feed: parts, history and incidents, and nothing about who uses what."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from django.test import Client as Browser
from pytest_django import DjangoAssertNumQueries

from gateway.coordination.rules import Rule
from gateway.lib import clock
from gateway.status.incidents import NewIncident, Poster, post_incident, post_update
from gateway.status.models import Incident, PartDay
from gateway.status.parts import BACKGROUND, CALLS, PAGES, PARTS, VENDORS, Status, of_vendor
from gateway.status.samples import record_samples
from gateway.status.stages import Kind, Severity, Stage
from tests.api.pages.conftest import INERT, SCRIPT, text
from tests.factories.cast import Cast
from tests.factories.fixed_window import hold_window
from tests.factories.health import connected_vendor
from tests.factories.tenant import load_vendor

STAFF = Poster(id="7", label="Sam Support")
FINE = dict.fromkeys(PARTS, Status.OPERATIONAL)


def sampled(found: dict[str, Status], *moments: datetime) -> None:
    for moment in moments:
        record_samples(found, now=moment)


def posted(**values: Any) -> Incident:
    new = {
        "kind": Kind.INCIDENT,
        "title": "Calls fail",
        "severity": Severity.MAJOR,
        "parts": [CALLS],
        "text": "We are looking.",
        **values,
    }
    return post_incident(poster=STAFF, new=NewIncident(**new))


def state_of(page: dict[str, Any], part: str) -> dict[str, Any]:
    return next(each for each in (*page["parts"], *page["vendors"]) if each["id"] == part)


@pytest.mark.django_db
def test_each_part_says_its_state_since_when_and_its_share() -> None:
    now = clock.now()
    sampled(FINE, now - timedelta(minutes=3), now - timedelta(minutes=2))
    sampled({**FINE, CALLS: Status.DOWN}, now - timedelta(minutes=1), now)
    page = Browser().get("/status")
    assert "Part of the service is not available." in text(page)
    assert "Not available" in text(page)
    assert "66.66% available" in text(page)
    assert "100.00% available" in text(page)
    found = Browser().get("/status.json").json()
    assert found["status"] == "down"
    assert state_of(found, CALLS)["status"] == "down"
    assert state_of(found, CALLS)["since"] == clock.rfc3339(now - timedelta(minutes=1))
    assert state_of(found, PAGES)["uptimePercent"] == 100.0


@pytest.mark.django_db
def test_without_a_sample_nothing_is_claimed() -> None:
    page = text(Browser().get("/status"))
    assert "The status of some parts is not known yet." in page
    assert "% available" not in page
    found = Browser().get("/status.json").json()
    assert {each["status"] for each in found["parts"]} == {"unknown"}
    assert found["parts"][0]["uptimePercent"] is None


@pytest.mark.django_db
def test_each_of_ninety_days_has_a_state_in_words() -> None:
    now = clock.now()
    today = now.date()
    sampled(FINE, now)
    PartDay.objects.bulk_create(
        [
            PartDay(part=CALLS, day=today - timedelta(days=89), operational_s=86_400),
            PartDay(part=CALLS, day=today - timedelta(days=88), operational_s=86_000, down_s=400),
            PartDay(part=CALLS, day=today - timedelta(days=87), operational_s=86_400),
            PartDay(part=CALLS, day=today - timedelta(days=90), down_s=86_400),
        ]
    )
    runs = state_of(Browser().get("/status.json").json(), CALLS)["days"]
    assert [run["status"] for run in runs] == ["operational", "down", "operational", "unknown"]
    assert runs[1]["downSeconds"] == 400
    assert runs[0]["from"] == (today - timedelta(days=89)).isoformat()
    assert runs[-1]["to"] == today.isoformat()
    page = text(Browser().get("/status"))
    assert "not available for 7 min" in page
    assert "1 day with trouble. The list below names each day." in page
    assert 'class="bars-down" d="M8 14H14"' in page


@pytest.mark.django_db
def test_a_schedule_that_stands_still_is_seen() -> None:
    sampled(FINE, clock.now() - timedelta(minutes=30))
    found = Browser().get("/status.json").json()
    assert state_of(found, BACKGROUND)["status"] == "down"
    assert state_of(found, CALLS)["status"] == "unknown"


def test_strangers_see_no_vendor_by_name_and_people_see_their_own(cast: Cast) -> None:
    for slug in ("alpha", "beta"):
        connected_vendor(cast.org, slug)
    connected_vendor(cast.other_org, "gamma")
    connected_vendor(cast.org, "hosted", hosted=True)
    found = {of_vendor(slug): Status.DOWN for slug in ("alpha", "beta", "gamma")}
    sampled({**FINE, VENDORS: Status.DEGRADED, **found}, clock.now())
    page = text(Browser().get("/status"))
    assert "Part of the service is degraded." in page
    assert not any(name in page for name in ("Alpha", "Beta", "Gamma", "Hosted", "Acme"))
    assert Browser().get("/status.json").json()["vendors"] == []
    own = text(cast.client("member").get("/status"))
    assert "Alpha" in own
    assert "Beta" in own
    assert "Gamma" not in own
    assert "Hosted" not in own


def test_a_deployment_may_name_every_vendor_of_its_catalog(cast: Cast, settings: Any) -> None:
    settings.STATUS_VENDORS = True
    connected_vendor(cast.org, "alpha")
    load_vendor("http://127.0.0.1:9/mcp", slug="unused")
    sampled({**FINE, of_vendor("alpha"): Status.DOWN, of_vendor("unused"): Status.DOWN}, clock.now())
    vendors = Browser().get("/status.json").json()["vendors"]
    assert [(each["name"], each["status"]) for each in vendors] == [("Alpha", "down"), ("Unused", "down")]


@pytest.mark.django_db
def test_incidents_are_shown_newest_first_with_their_updates() -> None:
    first = posted(title="Sign-in is slow")
    post_update(poster=STAFF, incident_id=first.pk, stage=Stage.RESOLVED, text="It is over.")
    posted(title="Calls fail")
    start = clock.now() + timedelta(days=1)
    posted(
        kind=Kind.MAINTENANCE,
        title="New database",
        severity=Severity.MINOR,
        starts_at=start,
        ends_at=start + timedelta(hours=1),
    )
    page = text(Browser().get("/status"))
    order = ["Calls fail", "Planned maintenance", "New database", "Past incidents", "Sign-in is slow", "It is over."]
    places = [page.index(each) for each in order]
    assert places == sorted(places)
    assert page.index("It is over.") < page.rindex("We are looking."), "the last update comes first"
    assert "Sam Support" not in page
    found = Browser().get("/status.json").json()
    assert [each["title"] for each in found["incidents"]] == ["Calls fail", "Sign-in is slow"]
    assert [each["stage"] for each in found["incidents"][1]["updates"]] == ["resolved", "investigating"]
    assert [each["title"] for each in found["maintenance"]] == ["New database"]


@pytest.mark.django_db
def test_old_incidents_leave_the_page_and_open_ones_stay() -> None:
    old = posted(title="Long over", starts_at=clock.now() - timedelta(days=100))
    assert "Long over" in text(Browser().get("/status"))
    post_update(poster=STAFF, incident_id=old.pk, stage=Stage.RESOLVED, text="Done.")
    assert "Long over" not in text(Browser().get("/status"))


@pytest.mark.django_db
def test_texts_of_incidents_are_text() -> None:
    posted(title=SCRIPT, text=f"{SCRIPT}\n\n<b>bold</b> & ]]>")
    page = text(Browser().get("/status"))
    assert SCRIPT not in page
    assert page.count(INERT) >= 2
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; ]]&gt;" in page
    feed = Browser().get("/status.atom")
    assert feed["Content-Type"] == "application/atom+xml; charset=utf-8"
    atom = "{http://www.w3.org/2005/Atom}"
    [entry] = ElementTree.fromstring(feed.content).findall(f"{atom}entry")
    assert entry.findtext(f"{atom}title") == SCRIPT
    summary = entry.find(f"{atom}summary")
    assert summary is not None
    assert summary.text is not None
    assert "<b>bold</b>" not in feed.content.decode()
    assert Browser().get("/status.json").json()["incidents"][0]["title"] == SCRIPT


@pytest.mark.django_db
def test_documents_are_cached_by_everyone_and_pages_by_their_browser() -> None:
    sampled(FINE, clock.now())
    for path in ("/status.json", "/status.atom"):
        first = Browser().get(path)
        assert first["Cache-Control"] == "public, max-age=30"
        assert "Set-Cookie" not in first.headers
        assert not first.cookies
        again = Browser().get(path, headers={"if-none-match": first["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert Browser().get(path, headers={"if-none-match": '"other"'}).status_code == 200
    browser = Browser()
    browser.get("/status")
    page = browser.get("/status")
    assert page["Cache-Control"] == "private, no-cache"
    assert browser.get("/status", headers={"if-none-match": page["ETag"]}).status_code == 304
    german = browser.get("/status", headers={"if-none-match": page["ETag"], "accept-language": "de"})
    assert german.status_code == 200
    posted()
    assert browser.get("/status", headers={"if-none-match": page["ETag"]}).status_code == 200


def test_pages_of_people_are_stored_nowhere(cast: Cast) -> None:
    page = cast.client("member").get("/status")
    assert page["Cache-Control"] == "no-store"
    assert "ETag" not in page


def test_a_view_costs_four_statements(cast: Cast, django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    now = clock.now()
    slugs = [f"vendor{number}" for number in range(12)]
    for slug in slugs:
        connected_vendor(cast.org, slug)
    found = {**FINE, **{of_vendor(slug): Status.OPERATIONAL for slug in slugs}}
    sampled(found, now - timedelta(minutes=1), now)
    for number in range(5):
        posted(title=f"Incident {number}")
    Browser().get("/status")  # loads the catalog
    for path in ("/status", "/status.json", "/status.atom"):
        with django_assert_max_num_queries(5):
            assert Browser().get(path).status_code == 200
    browser = cast.client("member")
    with django_assert_max_num_queries(12):
        page = browser.get("/status")
    assert len(page.content) < 64 * 1024


@pytest.mark.django_db
def test_it_is_in_german() -> None:
    sampled({**FINE, CALLS: Status.DEGRADED}, clock.now())
    page = text(Browser().get("/status", headers={"accept-language": "de"}))
    for words in ("Ein Teil des Dienstes ist eingeschränkt.", "Tool-Aufrufe", "Eingeschränkt", "Frühere Störungen"):
        assert words in page
    assert json.loads(Browser().get("/status.json", headers={"accept-language": "de"}).content)["parts"][0]["name"] == (
        "Tool calls"
    )


@pytest.mark.usefixtures("shared")
def test_strangers_are_counted_and_writes_refused(cast: Cast, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hold_window(monkeypatch)
    settings.BACKSTOP = Rule("backstop-of-this-test", limit=2, window_s=60)
    assert [Browser().get("/status").status_code for _ in range(3)] == [200, 200, 429]
    assert Browser().post("/status", REMOTE_ADDR="198.51.100.7").status_code == 405
    for number, path in enumerate(("/status.json", "/status.atom")):
        strange = {"REMOTE_ADDR": f"198.51.100.{number + 8}"}
        assert [Browser().get(path, **strange).status_code for _ in range(3)] == [200, 200, 429]
        assert Browser().post(path, REMOTE_ADDR=f"198.51.100.{number + 18}").status_code == 405

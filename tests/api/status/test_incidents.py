"""Staff post incidents in Django admin: updates in order, nothing edited, each post on record; others are refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client as Browser
from django.urls import reverse

from gateway.coordination.sqlite_store import SQLiteStore
from gateway.lib import clock
from gateway.lib.errors import Conflict, Invalid, NotFound
from gateway.status import open_incidents
from gateway.status.incidents import NewIncident, Poster, post_incident, post_update
from gateway.status.models import Incident, IncidentUpdate
from gateway.status.open_incidents import KnownIncidents
from gateway.status.parts import CALLS, SIGN_IN, of_vendor
from gateway.status.stages import Kind, Severity, Stage
from orgs.models import User
from tests.factories.cast import Cast, make_person
from tests.factories.tenant import load_vendor

STAFF = Poster(id="7", label="Sam Support")
POST = "/admin/status/incident/post/"
FORM = {
    "kind": "incident",
    "title": "Calls fail",
    "severity": "major",
    "parts": [CALLS, SIGN_IN],
    "starts_at": "",
    "ends_at": "",
    "text": "We are looking.",
}


def new(**values: Any) -> NewIncident:
    fields: dict[str, Any] = {
        "kind": Kind.INCIDENT,
        "title": "Calls fail",
        "severity": Severity.MAJOR,
        "parts": [CALLS],
        "text": "We are looking.",
    }
    return NewIncident(**{**fields, **values})


def staff(*permissions: str, is_superuser: bool = False) -> Browser:
    person = make_person("support")
    User.objects.filter(pk=person.pk).update(is_staff=True, is_superuser=is_superuser)
    person.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    browser = Browser()
    browser.force_login(User.objects.get(pk=person.pk), backend="orgs.signin.backend.IdentityBackend")
    return browser


@pytest.mark.django_db
def test_a_staff_member_posts_and_updates_it_to_its_end() -> None:
    browser = staff(is_superuser=True)
    assert browser.get(POST).status_code == 200
    page = browser.post(POST, FORM, follow=True)
    incident = Incident.objects.get()
    assert page.redirect_chain == [(reverse("admin:status_incident_change", args=[incident.pk]), 302)]
    assert "Posted. The status page shows it." in page.content.decode()
    assert (incident.title, incident.parts, incident.severity) == ("Calls fail", [CALLS, SIGN_IN], "major")
    update = reverse("admin:status_incident_update", args=[incident.pk])
    assert update in page.content.decode()
    for stage in ("identified", "identified", "monitoring", "resolved"):
        assert browser.post(update, {"stage": stage, "text": f"Now {stage}."}).status_code == 302
    incident.refresh_from_db()
    assert incident.ended_at is not None
    stages = [each.stage for each in incident.updates.all()]
    assert stages == ["resolved", "monitoring", "identified", "identified", "investigating"]
    assert {each.posted_by for each in incident.updates.all()} == {"Support"}
    entries = LogEntry.objects.filter(object_id=str(incident.pk)).order_by("id")
    assert [entry.action_flag for entry in entries] == [1, 2, 2, 2, 2]
    assert "We are looking." in entries[0].change_message
    again = browser.post(update, {"stage": "resolved", "text": "Once more."}, follow=True)
    assert "This incident has ended. Post a new one." in again.content.decode()
    assert IncidentUpdate.objects.count() == 5


@pytest.mark.parametrize("who", ["nobody", "member", "owner"])
def test_people_who_are_no_staff_are_sent_away(cast: Cast, who: str) -> None:
    incident = post_incident(poster=STAFF, new=new())
    for path in (POST, reverse("admin:status_incident_update", args=[incident.pk])):
        browser = cast.client(who)
        assert browser.get(path).status_code in (302, 403, 404)
        answer = browser.post(path, {**FORM, "stage": "resolved"})
        assert answer.status_code in (302, 403, 404)
    assert Incident.objects.count() == 1
    assert IncidentUpdate.objects.count() == 1
    assert not LogEntry.objects.exists()


@pytest.mark.django_db
def test_staff_who_may_only_look_post_nothing() -> None:
    incident = post_incident(poster=STAFF, new=new())
    browser = staff("view_incident")
    update = reverse("admin:status_incident_update", args=[incident.pk])
    seen = browser.get(reverse("admin:status_incident_change", args=[incident.pk]))
    assert seen.status_code == 200
    assert update not in seen.content.decode()
    assert POST not in browser.get(reverse("admin:status_incident_changelist")).content.decode()
    for path in (POST, update):
        assert browser.get(path).status_code == 403
        assert browser.post(path, {**FORM, "stage": "resolved"}).status_code == 403
    assert IncidentUpdate.objects.count() == 1


@pytest.mark.django_db
def test_each_of_the_two_has_a_permission_of_its_own() -> None:
    browser = staff("view_incident", "change_incident")
    assert browser.post(POST, FORM).status_code == 403
    incident = post_incident(poster=STAFF, new=new())
    update = reverse("admin:status_incident_update", args=[incident.pk])
    assert browser.post(update, {"stage": "monitoring", "text": "Better."}).status_code == 302


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"title": ""}, "required"),
        ({"title": "x" * 121}, "at most 120"),
        ({"parts": []}, "required"),
        ({"parts": ["vendor/none"]}, "not one of the available choices"),
        ({"kind": "maintenance"}, "Enter the start and the end of the maintenance."),
        (
            {"kind": "maintenance", "starts_at": "2020-01-01 10:00", "ends_at": "2020-01-01 11:00"},
            "after the start and in the future",
        ),
        ({"starts_at": "2999-01-01 10:00"}, "An incident can’t start in the future."),
        ({"starts_at": "soon"}, "valid date/time"),
        ({"ends_at": "2999-01-01 10:00"}, "An incident ends with its last update. Leave the end empty."),
        ({"text": " "}, "required"),
        ({"text": "x" * 4_001}, "at most 4000"),
        ({"title": "Calls\x1bfail"}, "Control and direction characters"),
        ({"text": "Look at \x1c this"}, "Control and direction characters"),
        ({"text": "Look at \u202e this"}, "Control and direction characters"),
        ({"severity": "huge"}, "not one of the available choices"),
    ],
)
@pytest.mark.django_db
def test_a_form_with_a_fault_posts_nothing(change: dict[str, Any], words: str) -> None:
    page = staff(is_superuser=True).post(POST, {**FORM, **change})
    assert page.status_code == 200
    assert words in page.content.decode()
    assert not Incident.objects.exists()
    assert not LogEntry.objects.exists()


@pytest.mark.django_db
def test_updates_go_forward_only() -> None:
    incident = post_incident(poster=STAFF, new=new())
    post_update(poster=STAFF, incident_id=incident.pk, stage=Stage.MONITORING, text="Better.")
    for stage in (Stage.INVESTIGATING, Stage.IDENTIFIED, Stage.SCHEDULED):
        with pytest.raises(Invalid) as refused:
            post_update(poster=STAFF, incident_id=incident.pk, stage=stage, text="Worse.")
        assert "stage" in refused.value.fields
    with pytest.raises(Invalid):
        post_update(poster=STAFF, incident_id=incident.pk, stage=Stage.RESOLVED, text="  ")
    post_update(poster=STAFF, incident_id=incident.pk, stage=Stage.RESOLVED, text="Done.")
    with pytest.raises(Conflict):
        post_update(poster=STAFF, incident_id=incident.pk, stage=Stage.RESOLVED, text="Done again.")
    Incident.objects.filter(pk=incident.pk)
    with pytest.raises(NotFound):
        post_update(
            poster=STAFF,
            incident_id=type(incident.pk)(int=1),
            stage=Stage.RESOLVED,
            text="Of none.",
        )
    assert IncidentUpdate.objects.count() == 3


@pytest.mark.django_db
def test_maintenance_has_stages_of_its_own() -> None:
    start = clock.now() + timedelta(hours=1)
    incident = post_incident(
        poster=STAFF, new=new(kind=Kind.MAINTENANCE, starts_at=start, ends_at=start + timedelta(hours=1))
    )
    assert incident.updates.get().stage == Stage.SCHEDULED
    with pytest.raises(Invalid):
        post_update(poster=STAFF, incident_id=incident.pk, stage=Stage.RESOLVED, text="Done.")
    post_update(poster=STAFF, incident_id=incident.pk, stage=Stage.COMPLETED, text="Done early.")
    incident.refresh_from_db()
    assert incident.ended_at is not None


@pytest.mark.django_db
def test_vendors_of_the_catalog_are_parts() -> None:
    load_vendor("http://127.0.0.1:9/mcp", slug="alpha")
    assert post_incident(poster=STAFF, new=new(parts=[of_vendor("alpha")])).parts == ["vendor/alpha"]
    with pytest.raises(Invalid):
        post_incident(poster=STAFF, new=new(parts=[of_vendor("beta")]))


@pytest.mark.django_db
def test_processes_learn_of_it_with_the_commit(
    shared: SQLiteStore, django_capture_on_commit_callbacks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_incidents, "KEPT_S", 0.0)
    known = KnownIncidents()
    with django_capture_on_commit_callbacks(execute=True):
        incident = post_incident(poster=STAFF, new=new())
        assert known.current(shared, clock.now()) == []
    [found] = known.current(shared, clock.now())
    assert (found.id, found.title, found.stage, found.vendors) == (
        str(incident.pk),
        "Calls fail",
        "investigating",
        None,
    )
    with django_capture_on_commit_callbacks(execute=True):
        post_update(poster=STAFF, incident_id=incident.pk, stage=Stage.RESOLVED, text="Done.")
    assert known.current(shared, clock.now()) == []

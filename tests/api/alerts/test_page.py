"""The page of alerts: what goes on, the settings, the secret that is shown once, the test."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client as Browser

from orgs.models import AlertMessage, AlertSettings
from proxy.control_plane.health.states import HealthStatus
from tests.api.alerts.stage import Stage
from tests.factories.cast import Cast
from tests.factories.health import connected_vendor
from tests.receivers.faults import Fault

FIELDS = {
    "kinds": ["vendor_down", "tools_changed"],
    "byMail": "on",
    "webhookUrl": "",
    "quietFrom": "22:00",
    "quietUntil": "06:00",
    "timeZone": "Europe/Berlin",
}


def path(cast: Cast) -> str:
    return f"/orgs/{cast.org.pk}/settings/alerts"


def page(browser: Browser, cast: Cast) -> str:
    answer = browser.get(path(cast))
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.parametrize(
    ("who", "status"), [("owner", 200), ("admin", 200), ("member", 403), ("other_owner", 404), ("stranger", 404)]
)
def test_who_opens_and_changes_it(cast: Cast, who: str, status: int) -> None:
    browser = cast.client(who)
    assert browser.get(path(cast)).status_code == status
    for action in ("", "test", "rotate"):
        answer = browser.post(path(cast), {**FIELDS, "action": action})
        assert answer.status_code == (302 if status == 200 else status)
    assert AlertSettings.objects.exists() == (status == 200)


def test_it_says_what_goes_on_and_what_was_sent(stage: Stage) -> None:
    browser = stage.cast.client("admin")
    assert "Nothing is wrong." in page(browser, stage.cast)
    connected_vendor(stage.cast.org, "acme")
    stage.health("acme", HealthStatus.DOWN, error_detail="host name not found, 3 failures in a row")
    stage.receiver.fail_next(Fault.answers(503))
    stage.round()
    shown = page(browser, stage.cast)
    assert "Acme isn’t responding" in shown
    assert "host name not found, 3 failures in a row" in shown
    assert "2 people" in shown
    assert "waiting" in shown
    assert "Acme isn’t responding" not in page(
        stage.cast.client("other_owner"), Cast(stage.cast.other_org, stage.cast.org, stage.cast.people)
    )


def test_settings_are_saved_and_shown_again(cast: Cast) -> None:
    browser = cast.client("admin")
    assert browser.post(path(cast), FIELDS).status_code == 302
    row = AlertSettings.objects.get()
    assert (row.quiet_from, row.quiet_until, row.time_zone, row.by_mail) == (22 * 60, 6 * 60, "Europe/Berlin", True)
    assert set(row.muted_kinds).isdisjoint(FIELDS["kinds"])
    shown = page(browser, cast)
    checked = re.findall(r'name="kinds" id="kind-(\w+)" value="\w+" checked', shown)
    assert checked == FIELDS["kinds"]
    assert 'value="22:00"' in shown


@pytest.mark.parametrize(
    ("member", "value"),
    [("quietFrom", "25:00"), ("timeZone", "Nowhere"), ("webhookUrl", "http://10.0.0.1/"), ("kinds", "sunrise")],
)
def test_bad_input_is_refused_in_words(cast: Cast, settings: Any, member: str, value: str) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    answer = cast.client("owner").post(path(cast), {**FIELDS, member: value})
    assert answer.status_code == 422
    assert member in answer.context["form"].errors
    assert not AlertSettings.objects.exists()


def test_the_secret_is_shown_once(cast: Cast) -> None:
    browser = cast.client("owner")
    made = browser.post(path(cast), {**FIELDS, "webhookUrl": "https://alerts.example.com/hook"})
    assert made.status_code == 201
    (secret,) = re.findall(r'value="(whsec_[^"]+)"', made.content.decode())
    assert made["Cache-Control"] == "no-store"
    assert secret not in page(browser, cast)
    assert browser.post(path(cast), {**FIELDS, "webhookUrl": "https://alerts.example.com/hook"}).status_code == 302
    rotated = browser.post(path(cast), {"action": "rotate"})
    (second,) = re.findall(r'value="(whsec_[^"]+)"', rotated.content.decode())
    assert second != secret
    assert "Alerts are also signed with the previous secret" in page(browser, cast)


def test_the_test_button_says_what_became_of_it(stage: Stage) -> None:
    browser = stage.cast.client("owner")
    answer = browser.post(path(stage.cast), {"action": "test"}, follow=True).content.decode()
    assert "A test was sent to owner@example.com." in answer
    assert "The webhook accepted the test." in answer
    stage.receiver.fail_next(Fault.answers(403))
    answer = browser.post(path(stage.cast), {"action": "test"}, follow=True).content.decode()
    assert "The webhook didn’t accept the test" in answer
    assert AlertMessage.objects.count() == 2


def test_the_page_needs_few_statements(stage: Stage, django_assert_max_num_queries: Any) -> None:
    connected_vendor(stage.cast.org, "acme")
    stage.health("acme", HealthStatus.DOWN)
    stage.round()
    browser = stage.cast.client("admin")
    with django_assert_max_num_queries(15):
        page(browser, stage.cast)

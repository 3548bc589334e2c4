"""The routes of alerts: settings, secret, test, causes and messages."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client as Browser

from orgs.models import AlertSettings
from proxy.control_plane.health.states import HealthStatus
from tests.api.alerts.stage import Stage
from tests.factories.cast import Cast
from tests.factories.health import connected_vendor


def send(browser: Browser, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    data = "" if body is None else json.dumps(body)
    answer = browser.generic(method, path, data, content_type="application/json")
    return answer.status_code, json.loads(answer.content)


def test_the_defaults_and_a_change(cast: Cast) -> None:
    browser, path = cast.client("admin"), f"/api/orgs/{cast.org.pk}/alert-settings"
    status, body = send(browser, "GET", path)
    assert status == 200
    assert (len(body["kinds"]), body["byMail"], body["webhookUrl"], body["quietFrom"]) == (7, True, "", "00:00")
    status, body = send(browser, "PATCH", path, {"kinds": ["error_spike"], "quietUntil": "06:30", "byMail": False})
    assert (status, body["kinds"], body["quietUntil"], body["byMail"]) == (200, ["error_spike"], "06:30", False)
    assert body["secret"] is None
    assert send(cast.client("other_owner"), "GET", path)[0] == 404
    assert send(cast.client("member"), "PATCH", path, {"byMail": True})[0] == 403
    assert AlertSettings.objects.get().by_mail is False


def test_the_secret_is_in_the_answer_that_made_it(cast: Cast) -> None:
    browser, path = cast.client("owner"), f"/api/orgs/{cast.org.pk}/alert-settings"
    assert send(browser, "POST", f"{path}/rotate-secret")[0] == 409
    _, made = send(browser, "PATCH", path, {"webhookUrl": "https://alerts.example.com/hook"})
    assert made["secret"].startswith("whsec_")
    _, rotated = send(browser, "POST", f"{path}/rotate-secret")
    assert rotated["secret"] not in {None, made["secret"]}
    assert rotated["previousSecretEndsAt"]
    _, shown = send(browser, "GET", path)
    assert "secret" not in shown
    _, ended = send(browser, "PATCH", path, {"webhookUrl": ""})
    assert (ended["webhookUrl"], ended["previousSecretEndsAt"]) == ("", None)


def test_bad_input_names_its_member_and_changes_nothing(cast: Cast, settings: Any) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    browser, path = cast.client("owner"), f"/api/orgs/{cast.org.pk}/alert-settings"
    bad = {
        "kinds": ["sunrise"],
        "byMail": "yes",
        "webhookUrl": "https://127.0.0.1/hook",
        "quietFrom": "24:00",
        "quietUntil": 6,
        "timeZone": "Mars",
    }
    for member, value in bad.items():
        status, body = send(browser, "PATCH", path, {member: value})
        assert (status, list(body["fields"])) == (400, [member]), body
    assert not AlertSettings.objects.exists()


def test_lists_and_the_test(stage: Stage) -> None:
    browser, base = stage.cast.client("admin"), f"/api/orgs/{stage.cast.org.pk}"
    connected_vendor(stage.cast.org, "acme")
    stage.health("acme", HealthStatus.DOWN)
    stage.round()
    _, (alert,) = send(browser, "GET", f"{base}/alerts")
    assert (alert["kind"], alert["cause"], alert["label"], alert["endedAt"]) == ("vendor_down", "acme", "Acme", None)
    stage.traveller.shift(1)
    status, trial = send(browser, "POST", f"{base}/alert-settings/test")
    assert (status, trial) == (200, {"mailedTo": "admin@example.com", "webhook": True, "answer": ""})
    _, messages = send(browser, "GET", f"{base}/alert-messages")
    assert [(each["moment"], each["mails"], each["webhook"]) for each in messages] == [
        ("test", 1, "sent"),
        ("begin", 2, "sent"),
    ]
    other = stage.cast.client("other_owner")
    assert send(other, "GET", f"/api/orgs/{stage.cast.other_org.pk}/alerts") == (200, [])
    assert send(other, "GET", f"{base}/alerts")[0] == 404

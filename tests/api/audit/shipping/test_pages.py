"""The pages of log shipping: list, wizard, one destination with its buttons, deletion. Spec: §4.13 · D95-D97, D147"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client as Browser
from django.urls import reverse

from audit.models import AdminAuditEntry, DeliveryHour, LogDestination, RefusedRecord
from audit.shipping import trial
from audit.shipping.config_sealing import config_of
from audit.shipping.platforms.registry import PLATFORMS
from gateway.lib import clock
from gateway.lib.guarded_client import Response
from tests.api.audit.shipping.stage import PlayedPlatform
from tests.factories.cast import Cast
from tests.factories.destinations import URL, webhook_of

SECRET = "a-signing-secret-that-nobody-may-read"
SCRIPT, INERT = "<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"
NAMES = ("log-shipping", "log-platforms", "log-destination-new", "log-destination", "log-destination-delete")
FOR_ADMINS = {"owner": 200, "admin": 200, "member": 403, "other_owner": 404, "stranger": 404, "nobody": 302}


@pytest.fixture
def destination(cast: Cast) -> LogDestination:
    return make(cast)


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> PlayedPlatform:
    played = PlayedPlatform()
    monkeypatch.setitem(trial.send_test.__kwdefaults__, "request", played)
    return played


def make(cast: Cast, label: str = "SIEM", **config: str) -> LogDestination:
    return webhook_of(cast.user("owner"), cast.org, label, **(config or {"secret": SECRET}))


def path(cast: Cast, name: str, *more: object) -> str:
    return reverse(f"audit_pages:{name}", args=[cast.org.id, *more])


def every_path(cast: Cast, destination: LogDestination) -> list[str]:
    more: dict[str, tuple[object, ...]] = {
        "log-destination-new": ("webhook",),
        "log-destination": (destination.pk,),
        "log-destination-delete": (destination.pk,),
    }
    return [path(cast, name, *more.get(name, ())) for name in NAMES]


def text(response: Any) -> str:
    return str(response.content.decode())


def notices(response: Any) -> list[str]:
    return [str(message) for message in response.context["messages"]]


def form_key(browser: Browser, address: str) -> str:
    found = re.search(r'name="form_key" value="([^"]+)"', text(browser.get(address)))
    assert found is not None
    return found[1]


def events() -> list[str]:
    rows = AdminAuditEntry.objects.filter(event_type__startswith="log_shipping").order_by("timestamp", "id")
    return [event.removeprefix("log_shipping.") for event in rows.values_list("event_type", flat=True)]


@pytest.mark.parametrize("who", FOR_ADMINS)
def test_pages_are_for_admins(cast: Cast, destination: LogDestination, who: str) -> None:
    for address in every_path(cast, destination):
        response = cast.client(who).get(address)
        assert response.status_code == FOR_ADMINS[who], address
        assert ("SIEM" in text(response)) <= (response.status_code == 200)


@pytest.mark.parametrize("who", ["member", "other_owner", "stranger", "nobody"])
def test_writes_are_refused_like_reads(
    cast: Cast, destination: LogDestination, platform: PlayedPlatform, who: str
) -> None:
    browser = cast.client(who)
    for address in every_path(cast, destination)[2:]:
        for action in ("", "pause", "test", "replay"):
            fields = {"action": action, "label": "intruder", "typed_name": "SIEM", "since": "2026-01-31"}
            assert browser.post(address, fields).status_code == FOR_ADMINS[who], (address, action)
    destination.refresh_from_db()
    assert (destination.label, destination.enabled, platform.batches) == ("SIEM", True, [])


def test_a_destination_of_another_organization_is_not_there(cast: Cast, destination: LogDestination) -> None:
    browser = cast.client("other_owner")
    for name in ("log-destination", "log-destination-delete"):
        address = reverse(f"audit_pages:{name}", args=[cast.other_org.id, destination.pk])
        assert browser.get(address).status_code == 404
        assert browser.post(address, {"typed_name": "SIEM", "action": "pause"}).status_code == 404
    assert LogDestination.objects.get().enabled


def test_from_an_empty_list_to_a_destination_that_was_tested(cast: Cast, platform: PlayedPlatform) -> None:
    browser = cast.client("admin")
    empty = text(browser.get(path(cast, "log-shipping")))
    assert "No destinations yet" in empty
    assert path(cast, "log-platforms") in empty
    choice = text(browser.get(path(cast, "log-platforms")))
    assert all(each.title in choice for each in PLATFORMS.values())
    address = path(cast, "log-destination-new", "webhook")
    assert address in choice
    form = text(browser.get(address))
    assert "Signing secret" in form
    assert 'type="password"' in form
    fields = {"form_key": form_key(browser, address), "label": " SIEM ", "endpointUrl": URL, "config.secret": SECRET}
    response = browser.post(address, fields, follow=True)
    made = LogDestination.objects.get()
    assert response.redirect_chain == [(path(cast, "log-destination", made.pk), 302)]
    assert notices(response) == ["SIEM receives all records from now on. Send a test record to check."]
    assert (made.label, made.platform, made.endpoint_url, config_of(made)) == (
        "SIEM",
        "webhook",
        URL,
        {"secret": SECRET},
    )
    platform.replies = [Response(202, {}, b"queued")]
    tested = browser.post(path(cast, "log-destination", made.pk), {"action": "test"}, follow=True)
    assert notices(tested) == ["SIEM accepted the test record: 202: queued"]
    again = browser.post(address, fields, follow=True)
    assert notices(again) == ["That form was already sent. The destination is in the list."]
    assert LogDestination.objects.count() == 1
    assert events() == ["created"]


@pytest.mark.parametrize("platform_value", PLATFORMS)
def test_each_platform_asks_in_its_own_words(cast: Cast, platform_value: str) -> None:
    asked = PLATFORMS[platform_value]
    page = text(cast.client("admin").get(path(cast, "log-destination-new", platform_value)))
    assert asked.title in page
    assert f">{asked.endpoint_label}" in page
    for field in asked.fields:
        assert f'name="config.{field.name}"' in page
        found = re.search(rf'<(?:input|textarea)[^>]*name="config.{field.name}"[^>]*>', page)
        assert found is not None
        assert found[0].startswith("<textarea") is field.has_lines
        assert field.has_lines or ('type="password"' in found[0]) is field.secret


def test_an_unknown_platform_has_no_form(cast: Cast) -> None:
    assert cast.client("admin").get(path(cast, "log-destination-new", "syslog")).status_code == 404


@pytest.mark.parametrize(
    ("platform_value", "fields", "complaint"),
    [
        ("webhook", {"label": "", "endpointUrl": URL}, 'id="id_label_error"'),
        ("webhook", {"label": "SIEM", "endpointUrl": ""}, 'id="id_endpointUrl_error"'),
        ("webhook", {"label": "SIEM", "endpointUrl": "ftp://x"}, "Use an https:// address of a public host"),
        ("platform_c", {"label": "SIEM", "endpointUrl": URL}, 'id="id_config.token_error"'),
        ("platform_d", {"label": "SIEM", "endpointUrl": URL, "config.token": SECRET}, 'id="id_endpointUrl_error"'),
        ("webhook", {"label": "SIEM", "endpointUrl": URL, "config.secret": "whsec_!"}, 'id="id_config.secret_error"'),
        ("webhook", {"label": "SIEM", "endpointUrl": URL, "config.secret": "x" * 102_400}, "id_config.secret_error"),
    ],
)
def test_a_bad_form_keeps_the_input_but_no_secret(
    cast: Cast, platform_value: str, fields: dict[str, str], complaint: str
) -> None:
    browser, address = cast.client("admin"), path(cast, "log-destination-new", platform_value)
    response = browser.post(address, {**fields, "form_key": form_key(browser, address)})
    page = text(response)
    assert response.status_code == 422
    assert complaint in page
    assert not fields["label"] or f'value="{fields["label"]}"' in page
    assert SECRET not in page
    assert "x" * 200 not in page
    assert not LogDestination.objects.exists()


def test_one_too_many_is_said_beside_the_form(cast: Cast, destination: LogDestination, settings: LazySettings) -> None:
    settings.LOG_DESTINATIONS_PER_ORGANIZATION = 1
    browser, address = cast.client("admin"), path(cast, "log-destination-new", "webhook")
    response = browser.post(address, {"label": "B", "endpointUrl": URL, "form_key": form_key(browser, address)})
    assert (response.status_code, "reached its limit of" in text(response)) == (422, True)
    listing = text(browser.get(path(cast, "log-shipping")))
    assert "reached its limit of" in listing
    assert path(cast, "log-platforms") not in listing


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "new"),
        ({"status": "ok", "last_delivery_at": clock.now()}, "delivering"),
        ({"status": "retrying", "failures": 1, "last_error": "503: busy"}, "retrying"),
        ({"status": "failing", "failures": 9, "last_error": f"401: {SCRIPT}"}, "failing"),
        ({"status": "ok", "enabled": False}, "paused"),
    ],
)
def test_the_state_is_said_in_words(
    cast: Cast, destination: LogDestination, changes: dict[str, Any], word: str
) -> None:
    LogDestination.objects.update(**changes)
    browser = cast.client("admin")
    for address in (path(cast, "log-shipping"), path(cast, "log-destination", destination.pk)):
        page = text(browser.get(address))
        assert re.search(rf"</svg> {word}</span>", page)
        assert SCRIPT not in page
        if changes.get("last_error"):
            assert changes["last_error"].replace(SCRIPT, INERT) in page
        assert ("Resume" in page) is (word == "paused")
        assert "logs.example.com" in page


def test_the_last_day_is_drawn_and_said(cast: Cast, destination: LogDestination) -> None:
    this_hour = clock.now().replace(minute=0, second=0, microsecond=0)
    DeliveryHour.objects.create(destination=destination, hour=this_hour, delivered=1_200, failures=1)
    DeliveryHour.objects.create(destination=destination, hour=this_hour - timedelta(hours=23), delivered=600, refused=2)
    DeliveryHour.objects.create(destination=destination, hour=this_hour - timedelta(hours=24), delivered=9_000)
    other = make(cast, "Other")
    DeliveryHour.objects.create(destination=other, hour=this_hour, skipped=7)
    page = text(cast.client("admin").get(path(cast, "log-shipping")))
    assert 'aria-label="Last 24 hours: 1,800 delivered, 2 refused, 0 skipped, 1 failed attempt"' in page
    assert 'aria-label="Last 24 hours: 0 delivered, 0 refused, 7 skipped, 0 failed attempts"' in page
    assert '<rect class="strip-bar" x="0" y="12" width="6" height="12"/>' in page
    assert '<rect class="strip-bar" x="184" y="0" width="6" height="24"/>' in page
    assert page.count("strip-trouble") == 3
    detail = text(cast.client("admin").get(path(cast, "log-destination", destination.pk)))
    assert detail.count("<tr>") == 25


def test_records_that_were_refused_are_named(cast: Cast, destination: LogDestination) -> None:
    for number in range(7):
        RefusedRecord.objects.create(
            destination=destination,
            log="requests",
            row_id=destination.pk,
            reason=f"{number} {SCRIPT}",
            refused_at=clock.now(),
        )
    page = text(cast.client("admin").get(path(cast, "log-destination", destination.pk)))
    assert [number for number in range(7) if f"{number} {INERT}" in page] == [2, 3, 4, 5, 6]
    assert "not specified by the platform" not in page
    RefusedRecord.objects.update(log="", row_id=None)
    page = text(cast.client("admin").get(path(cast, "log-destination", destination.pk)))
    assert "not specified by the platform" in page
    assert "None" not in page


def test_buttons_pause_and_resume(cast: Cast, destination: LogDestination) -> None:
    browser, address = cast.client("admin"), path(cast, "log-destination", destination.pk)
    paused = browser.post(address, {"action": "pause"}, follow=True)
    assert notices(paused) == ["SIEM is paused. Nothing is sent to it."]
    assert not LogDestination.objects.get().enabled
    assert notices(browser.post(address, {"action": "resume"}, follow=True)) == ["SIEM has resumed."]
    assert LogDestination.objects.get().enabled
    assert events() == ["created", "updated", "updated"]


def test_a_refused_test_is_told_in_the_platforms_words(
    cast: Cast, destination: LogDestination, platform: PlayedPlatform
) -> None:
    platform.replies = [Response(401, {}, f"{SCRIPT} {SECRET} {'x' * 500}".encode())]
    browser, address = cast.client("admin"), path(cast, "log-destination", destination.pk)
    response = browser.post(address, {"action": "test"}, follow=True)
    (notice,) = notices(response)
    assert notice.startswith(f"SIEM didn’t accept the test record: 401: {SCRIPT} [hidden] xxx")
    assert len(notice) < 300
    assert INERT in text(response)
    assert SCRIPT not in text(response)
    for _ in range(2):
        trial.slots.take(cast.org.id)
    try:
        assert notices(browser.post(address, {"action": "test"}, follow=True)) == [trial.TooManyTests.message]
    finally:
        for _ in range(2):
            trial.slots.give_back(cast.org.id)


def test_a_changed_destination_keeps_what_is_left_empty(cast: Cast) -> None:
    made = make(cast, secret=SECRET, previousSecret="the-one-before")
    browser, address = cast.client("admin"), path(cast, "log-destination", made.pk)
    page = text(browser.get(address))
    assert 'placeholder="a-si********"' in page
    assert SECRET not in page
    fields = {"label": "New", "endpointUrl": f"{URL}/2", "config.secret": "", "config.previousSecret": ""}
    changed = browser.post(address, {**fields, "remove.previousSecret": "on"}, follow=True)
    assert notices(changed) == ["New saved. The next attempt starts now."]
    row = LogDestination.objects.get()
    assert (row.label, row.endpoint_url, config_of(row)) == ("New", f"{URL}/2", {"secret": SECRET})
    refused = browser.post(address, {**fields, "endpointUrl": "ftp://x", "config.secret": "typed-secret-value"})
    assert refused.status_code == 422
    assert "typed-secret-value" not in text(refused)
    assert config_of(LogDestination.objects.get()) == {"secret": SECRET}


def test_headers_have_a_line_each_and_are_not_shown_again(cast: Cast) -> None:
    browser, address = cast.client("admin"), path(cast, "log-destination-new", "platform_f")
    headers = f"X-Key: {SECRET}\r\nX-Other: another-secret\r\n"
    fields = {"label": "Collector", "endpointUrl": "https://otlp.example.com", "config.headers": headers}
    for wrong in ({"label": ""}, {"config.headers": f"X-Key: {SECRET}\r\nHost: other"}):
        refused = browser.post(address, {**fields, **wrong, "form_key": form_key(browser, address)})
        assert refused.status_code == 422
        assert SECRET not in text(refused)
    browser.post(address, {**fields, "form_key": form_key(browser, address)})
    row = LogDestination.objects.get()
    assert config_of(row) == {"headers": f"X-Key: {SECRET}\nX-Other: another-secret"}
    page = text(browser.get(path(cast, "log-destination", row.pk)))
    assert 'placeholder="X-Ke********"' in page
    assert SECRET not in page


def test_a_replay_from_a_time(cast: Cast, destination: LogDestination) -> None:
    browser, address = cast.client("admin"), path(cast, "log-destination", destination.pk)
    done = browser.post(address, {"action": "replay", "since": "2026-01-31T08:00"}, follow=True)
    assert notices(done) == ["SIEM will receive all records since that time again."]
    assert (
        AdminAuditEntry.objects.get(event_type="log_shipping.replayed").metadata["since"] == "2026-01-31T08:00:00.000Z"
    )
    for wrong in ("", "yesterday", "2999-01-01T00:00"):
        refused = browser.post(address, {"action": "replay", "since": wrong})
        assert refused.status_code == 422
        assert 'id="id_since_error"' in text(refused)
    assert events() == ["created", "replayed"]


def test_deleting_asks_for_the_name(cast: Cast, destination: LogDestination) -> None:
    browser, address = cast.client("admin"), path(cast, "log-destination-delete", destination.pk)
    refused = browser.post(address, {"typed_name": "siem"})
    assert (refused.status_code, LogDestination.objects.count()) == (422, 1)
    done = browser.post(address, {"typed_name": "SIEM"}, follow=True)
    assert done.redirect_chain == [(path(cast, "log-shipping"), 302)]
    assert notices(done) == ["SIEM was deleted. Nothing more is sent to it."]
    assert not LogDestination.objects.exists()
    assert browser.get(address).status_code == 404


def test_without_a_plan_it_can_be_paused_and_deleted(
    cast: Cast, destination: LogDestination, settings: LazySettings, platform: PlayedPlatform
) -> None:
    settings.BILLING_MODE = "manual"
    browser, address = cast.client("admin"), path(cast, "log-destination", destination.pk)
    for each in (path(cast, "log-shipping"), address):
        page = browser.get(each)
        assert page.status_code == 402
        assert "An owner can renew it" in text(page)
        assert "Pause" in text(page)
        assert "logs.example.com" not in text(page)
        assert "Send test" not in text(page)
    for action in ("test", "replay", "resume", ""):
        assert browser.post(address, {"action": action, "since": "2026-01-31"}).status_code == 402
    assert not platform.batches
    assert notices(browser.post(address, {"action": "pause"}, follow=True)) == [
        "SIEM is paused. Nothing is sent to it."
    ]
    assert "Resume" not in text(browser.get(address))
    done = browser.post(path(cast, "log-destination-delete", destination.pk), {"typed_name": "SIEM"})
    assert done.status_code == 302
    assert not LogDestination.objects.exists()


def test_names_with_markup_are_inert(cast: Cast) -> None:
    made = make(cast, SCRIPT)
    for address in every_path(cast, made):
        page = text(cast.client("owner").get(address))
        assert SCRIPT not in page
        assert "<script>" not in page
        assert INERT in page or "/new" in address


def test_forms_need_the_token_of_their_page(cast: Cast, destination: LogDestination) -> None:
    browser = Browser(enforce_csrf_checks=True)
    browser.cookies = cast.client("owner").cookies
    answer = browser.post(path(cast, "log-destination", destination.pk), {"action": "pause"})
    assert answer.status_code == 403
    assert LogDestination.objects.get().enabled


def test_the_admin_log_names_the_changes(cast: Cast, destination: LogDestination) -> None:
    page = text(cast.client("owner").get(reverse("audit_pages:admin-log", args=[cast.org.id])))
    assert '<optgroup label="Log shipping">' in page
    assert "log_shipping.records_skipped" in page
    assert "log_shipping.created" in page

"""The device page: nothing is decided by following a link, by strangers, or twice."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial

import pytest
from django.http import HttpResponse
from django.test import Client as Browser
from pytest_django.fixtures import Settings

from audit.models import AdminAuditEntry
from gateway.lib import clock
from oauth_ext.models import Client, DeviceGrant, UserCodeMiss
from tests.api.oauth_ext.conftest import Service
from tests.api.oauth_ext.devices import Device, start_device
from tests.factories.cast import Cast
from tests.factories.races import at_once

NOT_VALID = "This code isn’t valid or has expired. Compare it with the device’s screen, or start again there."


@pytest.fixture
def device(service: Service) -> Device:
    return start_device(service)


def text(response: HttpResponse) -> str:
    """The page as a person reads it."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def look_up(browser: Browser, user_code: str) -> HttpResponse:
    return browser.post("/device", {"user_code": user_code})


def test_signing_in_comes_first_and_keeps_the_code(db: None) -> None:
    answer = Browser().get("/device?user_code=WDJB-MJHT")
    assert answer.status_code == 302
    assert answer["Location"] == "/signin?next=/device%3Fuser_code%3DWDJB-MJHT"
    assert Browser().post("/device", {"user_code": "x", "action": "approve"}).status_code == 302


def test_a_link_fills_the_field_in_and_does_nothing_else(cast: Cast, device: Device) -> None:
    answer = cast.client("member").get("/device", {"user_code": device.user_code, "action": "approve"})
    assert answer.status_code == 200
    assert f'value="{device.user_code}"' in answer.content.decode()
    assert "build bot" not in text(answer)
    assert device.row.decision == ""
    assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]
    assert answer["Cache-Control"] == "no-store"


def test_a_link_cannot_inject(cast: Cast) -> None:
    content = cast.client("member").get("/device", {"user_code": '"><script>alert(1)</script>'}).content.decode()
    assert "<script>alert" not in content


@pytest.mark.parametrize("spell", [str.lower, lambda code: code.replace("-", ""), lambda code: f" {code} "])
def test_the_confirmation_says_who_asks_for_what(cast: Cast, device: Device, spell: object) -> None:
    answer = look_up(cast.client("member"), spell(device.user_code))  # type: ignore[operator]
    assert answer.status_code == 200
    page = text(answer)
    for part in ("build bot", "Acme", "127.0.0.1", device.user_code, "its vendors in Acme"):
        assert part in page
    assert "Do you have this code on a screen in front of you? Don’t continue if someone sent it to you." in page
    buttons = re.findall(r'name="action" value="(\w+)"', answer.content.decode())
    assert buttons == ["deny", "approve"]  # the safe one first
    assert device.row.decision == ""


def test_the_confirmation_names_single_vendors(cast: Cast, service: Service, vendor: str) -> None:
    device = start_device(service, scope="mcp:acme")
    assert "use Acme under its own identity" in text(look_up(cast.client("member"), device.user_code))


@pytest.mark.parametrize(
    ("action", "decision", "event", "says"),
    [
        (
            "approve",
            "approved",
            "device.approved",
            "You can close this window and return to your terminal.",
        ),
        ("deny", "denied", "device.denied", "denied."),
    ],
)
def test_a_decision_is_written_down(
    cast: Cast, device: Device, action: str, decision: str, event: str, says: str
) -> None:
    answer = device.decide(cast.client("member"), action)
    assert answer.status_code == 200
    assert says in text(answer)
    row, member = device.row, cast.user("member")
    assert (row.decision, row.decided_by) == (decision, member)
    entry = AdminAuditEntry.objects.get(event_type__startswith="device.")
    assert (entry.event_type, entry.org_id) == (event, cast.org.id)
    assert (entry.actor_id, entry.actor_label) == (str(member.id), "Member")
    assert (entry.target_id, entry.target_label) == (str(device.service.client.id), "build bot")
    assert entry.metadata == {
        "client_id": device.service.client.client_id,
        "scope": "mcp",
        "requested_from": "127.0.0.1",
    }


@pytest.mark.parametrize("first", ["approve", "deny"])
@pytest.mark.parametrize("second", ["approve", "deny"])
def test_the_first_decision_counts(cast: Cast, device: Device, first: str, second: str) -> None:
    browser = cast.client("member")
    shown = text(device.decide(browser, first))
    again = device.decide(browser, second)
    assert again.status_code == 200
    assert text(again) == shown
    assert AdminAuditEntry.objects.filter(event_type__startswith="device.").count() == 1
    assert NOT_VALID in text(device.decide(cast.client("owner"), second))
    assert NOT_VALID in text(look_up(browser, device.user_code))


def refused(response: HttpResponse) -> bool:
    """The one answer for every code that does not lead anywhere."""
    assert response.status_code == 404
    assert NOT_VALID in text(response)
    assert "build bot" not in text(response)
    return True


@pytest.mark.parametrize("action", ["", "approve", "deny"])
@pytest.mark.parametrize("who", ["other_owner", "stranger"])
def test_people_of_other_organizations_learn_nothing(cast: Cast, device: Device, who: str, action: str) -> None:
    assert refused(device.decide(cast.client(who), action))
    assert device.row.decision == ""
    assert not AdminAuditEntry.objects.filter(event_type__startswith="device.").exists()


def test_a_former_member_learns_nothing(cast: Cast, device: Device) -> None:
    browser = cast.client("member")
    assert look_up(browser, device.user_code).status_code == 200
    cast.org.memberships.get(user=cast.user("member")).delete()
    assert refused(device.decide(browser))


def test_operators_may_ask_for_admins(cast: Cast, device: Device, settings: Settings) -> None:
    settings.DEVICE_APPROVER_ROLE = "admin"
    assert refused(device.decide(cast.client("member")))
    assert device.decide(cast.client("admin")).status_code == 200


def test_codes_whose_time_is_over(cast: Cast, device: Device) -> None:
    DeviceGrant.objects.update(expires_at=clock.now())
    assert refused(device.decide(cast.client("member")))
    DeviceGrant.objects.update(expires_at=clock.now() + timedelta(minutes=5))
    Client.objects.update(expires_at=clock.now())
    assert refused(device.decide(cast.client("member")))


@pytest.mark.parametrize("code", ["", "WDJB-MJHT", "nonsense", "\x00", "x" * 10_000])
def test_codes_that_do_not_exist(cast: Cast, device: Device, code: str) -> None:
    assert refused(look_up(cast.client("member"), code))


def test_a_form_without_its_token(cast: Cast, device: Device) -> None:
    strict = Browser(enforce_csrf_checks=True)
    strict.cookies = cast.client("member").cookies
    assert device.decide(strict).status_code == 403
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    answer = cast.client("member").post(
        "/device", {"user_code": device.user_code, "action": "approve"}, headers=foreign
    )
    assert answer.status_code == 403
    assert device.row.decision == ""


def test_the_eleventh_guess_waits_even_if_it_is_right(cast: Cast, device: Device) -> None:
    browser = cast.client("member")
    left = []
    for _ in range(10):
        page = text(look_up(browser, "BBBB-BBBB"))
        left.append(re.findall(r"(\d+) attempts? left", page))
    assert left == [[]] * 6 + [["3"], ["2"], ["1"], ["0"]]
    for code in ("BBBB-BBBB", device.user_code):
        answer = look_up(browser, code)
        assert answer.status_code == 429
        assert "Too many wrong codes" in text(answer)
        assert 0 < int(answer["Retry-After"]) <= 900
    assert device.decide(browser).status_code == 429
    assert device.row.decision == ""
    UserCodeMiss.objects.update(missed_at=clock.now() - timedelta(seconds=900))
    assert device.decide(browser).status_code == 200


def test_an_address_is_counted_like_a_person(cast: Cast, device: Device) -> None:
    for who in ("stranger", "other_owner"):
        for _ in range(5):
            assert refused(look_up(cast.client(who), "BBBB-BBBB"))
    assert look_up(cast.client("member"), device.user_code).status_code == 429
    elsewhere = cast.client("member").post("/device", {"user_code": device.user_code}, REMOTE_ADDR="192.0.2.7")
    assert elsewhere.status_code == 200


def test_right_codes_cost_nothing(cast: Cast, service: Service) -> None:
    browser = cast.client("member")
    for _ in range(12):
        device = start_device(service)
        DeviceGrant.objects.update(expires_at=clock.now() + timedelta(minutes=5))
        assert look_up(browser, device.user_code).status_code == 200
        assert device.decide(browser).status_code == 200
    assert not UserCodeMiss.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_fifty_guesses_at_once_are_ten(committed_cast: Cast) -> None:
    browsers = [committed_cast.client("member") for _ in range(25)]
    answers = at_once(*[partial(look_up, browser, "BBBB-BBBB") for browser in browsers] * 2)
    assert sorted(getattr(answer, "status_code", answer) for answer in answers) == [404] * 10 + [429] * 40  # type: ignore[type-var]

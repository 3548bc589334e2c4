"""Polling for what a person decides. Spec: section 3 (device table), section 7 (device errors)"""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from pytest_django.fixtures import Settings

from gateway.coordination.rules import Rule
from gateway.lib import clock
from oauth_ext.models import AccessToken, Client, DeviceGrant, TokenFamily
from tests.api.oauth_ext.conftest import Service, make_service, post
from tests.api.oauth_ext.devices import GRANT_TYPE, Device, credentials, start_device
from tests.api.oauth_ext.test_code_grant import INVALID_GRANT, outcomes
from tests.api.oauth_ext.test_token import UNIFIED, read, refusal
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.factories.races import at_once


@pytest.fixture
def device(service: Service) -> Device:
    return start_device(service)


def test_nobody_has_decided_yet(device: Device) -> None:
    for _ in range(3):
        assert refusal(device.patient_poll()) == (400, "authorization_pending")


def test_waiting_uses_up_nothing_and_impatience_does(device: Device, settings: Settings) -> None:
    settings.REFUSED_TOKEN_REQUESTS = Rule(f"impatience {clock.now().timestamp()}", limit=1, window_s=60)
    for _ in range(3):
        assert refusal(device.patient_poll()) == (400, "authorization_pending")
    assert refusal(device.poll()) == (400, "slow_down")
    assert refusal(device.poll()) == (429, "rate_limited")


def test_approval_gives_tokens_of_the_service_client(cast: Cast, device: Device) -> None:
    assert device.decide(cast.client("member")).status_code == 200
    answer = device.poll()
    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
    assert (body["token_type"], body["expires_in"], body["scope"]) == ("Bearer", 3600, "mcp")
    assert answer["Cache-Control"] == "no-store"
    claims = read(body["access_token"])
    client = device.service.client
    assert claims["sub"] == f"svc:{cast.org.id}:{client.client_id}"
    assert (claims["org_id"], claims["client_id"], claims["aud"]) == (str(cast.org.id), client.client_id, UNIFIED)
    identity = load_identity(body["access_token"])
    assert (identity.subject, identity.user_id) == (client.subject, None)
    family = TokenFamily.objects.get()
    assert (family.user, family.approved_by) == (None, cast.user("member"))


def test_the_tokens_can_be_refreshed_by_the_client_alone(cast: Cast, device: Device, public_client: Client) -> None:
    device.decide(cast.client("admin"))
    first = device.poll().json()["refresh_token"]
    refresh = {"grant_type": "refresh_token", "refresh_token": first}
    assert refusal(post({**refresh, "client_id": device.service.client.client_id})) == (401, "invalid_client")
    assert refusal(post({**refresh, "client_id": public_client.client_id})) == INVALID_GRANT
    second = post({**refresh, **credentials(device.service)})
    assert second.status_code == 200
    assert read(second.json()["access_token"])["sub"] == device.service.client.subject
    cast.org.memberships.get(user=cast.user("admin")).delete()  # the token speaks for the client, not for its approver
    third = post({**refresh, "refresh_token": second.json()["refresh_token"]}, Authorization=device.service.basic)
    assert third.status_code == 200


@pytest.mark.parametrize("scope", ["mcp", "mcp:all", "mcp:acme"])
def test_the_scope_is_the_one_asked_for_at_the_start(cast: Cast, service: Service, vendor: str, scope: str) -> None:
    device = start_device(service, scope=scope)
    device.decide(cast.client("member"))
    body = device.poll(scope="mcp:all").json()
    assert body["scope"] == scope
    assert read(body["access_token"])["scope"] == scope


def test_a_code_gives_tokens_once(cast: Cast, device: Device) -> None:
    device.decide(cast.client("member"))
    assert device.poll().status_code == 200
    for _ in range(2):
        assert refusal(device.patient_poll()) == INVALID_GRANT
    assert AccessToken.objects.count() == 1


def test_denial(cast: Cast, device: Device) -> None:
    device.decide(cast.client("member"), "deny")
    for _ in range(2):
        assert refusal(device.patient_poll()) == (400, "access_denied")
    assert not AccessToken.objects.exists()


@pytest.mark.usefixtures("stopped_clock")
def test_whoever_polls_too_fast_has_to_wait_longer_each_time(device: Device) -> None:
    assert refusal(device.poll()) == (400, "authorization_pending")
    for interval in (10, 15, 20):
        assert refusal(device.poll()) == (400, "slow_down")
        assert device.row.interval_s == interval
    # Nineteen seconds later are still too soon, and cost five more.
    DeviceGrant.objects.update(last_polled_at=clock.now() - timedelta(seconds=19))
    assert refusal(device.poll()) == (400, "slow_down")
    DeviceGrant.objects.update(last_polled_at=clock.now() - timedelta(seconds=25))
    assert refusal(device.poll()) == (400, "authorization_pending")
    assert device.row.interval_s == 25


@pytest.mark.usefixtures("stopped_clock")
def test_the_interval_counts_before_the_decision(cast: Cast, device: Device) -> None:
    device.poll()
    device.decide(cast.client("member"))
    assert refusal(device.poll()) == (400, "slow_down")
    assert device.patient_poll().status_code == 200
    other = start_device(device.service)
    other.poll()
    other.decide(cast.client("member"), "deny")
    assert refusal(other.poll()) == (400, "slow_down")


@pytest.mark.parametrize("decision", ["", "approved", "denied"])
@pytest.mark.usefixtures("stopped_clock")
def test_time_is_over(device: Device, decision: str) -> None:
    DeviceGrant.objects.update(decision=decision, expires_at=clock.now() + timedelta(seconds=5))
    assert refusal(device.poll())[1] != "expired_token" if decision != "approved" else True
    DeviceGrant.objects.update(expires_at=clock.now())
    for _ in range(2):
        assert refusal(device.poll()) == (400, "expired_token")  # before the interval and the decision
    assert not AccessToken.objects.exists()


def test_another_service_client(cast: Cast, device: Device) -> None:
    other = make_service(cast, name="other bot")
    foreign = make_service(cast, organization=cast.other_org, actor=cast.user("other_owner"))
    device.decide(cast.client("member"))
    for thief in (other, foreign):
        assert refusal(device.poll(**credentials(thief))) == INVALID_GRANT
    assert device.poll().status_code == 200


def test_a_public_client(cast: Cast, device: Device, public_client: Client) -> None:
    device.decide(cast.client("member"))
    as_public = {"grant_type": GRANT_TYPE, "device_code": device.device_code, "client_id": public_client.client_id}
    for fields in (as_public, {**as_public, "client_secret": "x"}):
        assert refusal(post(fields)) == (400, "unauthorized_client")
    assert not AccessToken.objects.exists()


def test_a_client_has_to_prove_itself_before_anything_else(device: Device) -> None:
    client_id = device.service.client.client_id
    for changes in (
        {"client_secret": "wrong"},
        {"client_secret": ""},
        {"client_id": "svc_unknown"},
        {"client_id": "", "client_secret": ""},
        {"client_secret": "wrong", "device_code": "unknown"},
    ):
        assert refusal(device.poll(**changes)) == (401, "invalid_client"), changes
    assert device.row.last_polled_at is None
    Client.objects.filter(client_id=client_id).update(expires_at=clock.now())
    assert refusal(device.poll()) == (401, "invalid_client")


@pytest.mark.parametrize("code", ["unknown", "x" * 43, "' OR 1=1--"])
def test_unknown_codes(device: Device, code: str) -> None:
    assert refusal(device.poll(device_code=code)) == INVALID_GRANT
    assert refusal(device.poll(device_code=device.user_code)) == INVALID_GRANT


def test_a_code_must_be_sent(device: Device) -> None:
    assert refusal(device.poll(device_code="")) == (400, "invalid_request")


def test_http_basic(cast: Cast, device: Device) -> None:
    device.decide(cast.client("member"))
    fields = {"grant_type": GRANT_TYPE, "device_code": device.device_code}
    assert post(fields, Authorization=device.service.basic).status_code == 200


def test_a_deleted_client(device: Device) -> None:
    device.service.client.delete()
    assert refusal(device.poll()) == (401, "invalid_client")
    assert not DeviceGrant.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_fifty_polls_at_once_before_it(committed_cast: Cast) -> None:
    device = start_device(make_service(committed_cast))
    answers = at_once(*[device.poll] * 50)
    errors = sorted(refusal(each) for each in answers)  # type: ignore[arg-type]
    assert errors == [(400, "authorization_pending")] + [(400, "slow_down")] * 49
    assert device.row.interval_s == 5 + 49 * 5


@pytest.mark.django_db(transaction=True)
def test_polling_while_a_person_decides(committed_cast: Cast) -> None:
    device = start_device(make_service(committed_cast))
    browsers = [committed_cast.client("member") for _ in range(4)]
    deciding = [partial(device.decide, browser) for browser in browsers]
    answers = at_once(*[device.poll] * 12, *deciding)
    assert set(outcomes(answers)) <= {200, 400, 404}
    tokens = [each for each in answers[:12] if each.status_code == 200]  # type: ignore[union-attr]
    assert AccessToken.objects.count() == len(tokens) <= 1
    assert tokens or device.patient_poll().status_code == 200

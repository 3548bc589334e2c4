"""Fifty threads that want the same thing at the same moment, round after round.

A round ends in exactly the outcome that the specification gives, whoever was first: never two tokens for what may be
used once, never 500 or 503, and nothing that outlives what was deleted in the middle. `make test` plays one round of
each race; RACE_ROUNDS=200 plays more (CONTRIBUTING.md).
Spec: §3, §4.2 · D120, D123, D127-D129, D45
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest
from django.test import Client as Browser
from pytest_django.fixtures import Settings

from audit.models import AdminAuditEntry
from gateway.coordination.rules import Rule
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import AccessToken, Client, Grant, RefreshToken, TokenFamily
from oauth_ext.services.registration import delete_registered_client
from oauth_ext.services.service_clients import delete_service_client
from orgs.services.members import remove_member
from tests.api.oauth_ext.conftest import make_service
from tests.api.oauth_ext.devices import start_device
from tests.api.oauth_ext.flow import answer_of, make_flow
from tests.api.oauth_ext.test_code_grant import INVALID_GRANT
from tests.api.oauth_ext.test_token import refusal
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.factories.races import at_once

ROUNDS = int(os.environ.get("RACE_ROUNDS") or 1)
THREADS = 50
CODES = 7  # of one person, each brought by as many threads
LATEST_START_S = 0.2
INVALID_CLIENT = (401, "invalid_client")
GRACE_CHILDREN = 6  # the one rotation, and five within the grace period


def exchange_a_code(cast: Cast, chance: Random) -> None:
    """One gets tokens; all others come second, and that ends what the one got."""
    flow = make_flow(cast)
    code = flow.code()
    given = checked(at_once(*[lambda: flow.redeem(code)] * THREADS), {INVALID_GRANT})
    assert len(given) == 1
    assert_dead(given, flow.client)
    assert refusal(flow.redeem(code)) == INVALID_GRANT


def refresh_in_the_grace_period(cast: Cast, chance: Random) -> None:
    """One rotation and five more children; the family lives, and every returned pair works."""
    flow = make_flow(cast)
    first = flow.tokens()["refresh_token"]
    given = checked(at_once(*[lambda: flow.refresh(first)] * THREADS), {INVALID_GRANT})
    assert len(given) == GRACE_CHILDREN
    assert len({pair["refresh_token"] for pair in given}) == GRACE_CHILDREN
    for pair in given:
        load_identity(pair["access_token"])
    assert not AdminAuditEntry.objects.filter(
        event_type="oauth.refresh_reuse_detected", target_id=str(flow.client.pk)
    ).exists()
    assert TokenFamily.objects.filter(client=flow.client).count() == 1
    assert flow.refresh(chance.choice(given)["refresh_token"]).status_code == 200


def poll_after_the_approval(cast: Cast, chance: Random) -> None:
    """One poll gets the tokens, for all others the code was used."""
    device = start_device(make_service(cast))
    assert device.decide(cast.client("member")).status_code == 200
    given = checked(at_once(*[device.poll] * THREADS), {INVALID_GRANT})
    assert len(given) == 1
    assert load_identity(given[0]["access_token"]).subject == device.service.client.subject
    assert AccessToken.objects.filter(application=device.service.client).count() == 1


def approve_and_deny(cast: Cast, chance: Random) -> None:
    """The first decision counts: its person is shown it however often they press, the other that the code is over."""
    device = start_device(make_service(cast))
    sides = {"member": "approve", "admin": "deny"}
    if chance.random() < 0.5:
        sides = {"member": "deny", "admin": "approve"}
    asked = [(who, partial(device.decide, cast.client(who), action)) for who, action in sides.items()] * (THREADS // 2)
    chance.shuffle(asked)
    answers = at_once(*[work for _, work in asked])
    (winner,) = [who for who in sides if cast.user(who) == device.row.decided_by]
    decision = {"approve": "approved", "deny": "denied"}[sides[winner]]
    assert [status(answer) for answer in answers] == [200 if who == winner else 404 for who, _ in asked]
    entry = AdminAuditEntry.objects.get(event_type__startswith="device.", target_id=str(device.service.client.pk))
    assert (entry.event_type, entry.actor_id) == (f"device.{decision}", str(cast.user(winner).pk))
    answer = device.poll()
    assert (answer.status_code if decision == "approved" else refusal(answer)) in {200, (400, "access_denied")}
    assert AccessToken.objects.filter(application=device.service.client).count() == (decision == "approved")


def allow_and_cancel(cast: Cast, chance: Random) -> None:
    """A request is answered once: with one code, or with a refusal, and every other press comes too late."""
    flow = make_flow(cast)
    page = flow.ask()
    cookies = {name: each.value for name, each in flow.browser.cookies.items()}

    def press(action: str) -> Any:
        browser = Browser()
        browser.cookies.load(cookies)  # of its own: an answer changes them
        return browser.post(page, {"action": action, "organization": str(cast.org.id)})

    presses = [partial(press, "allow"), partial(press, "cancel")] * (THREADS // 2)
    chance.shuffle(presses)
    answers = at_once(*presses)
    assert sorted(map(status, answers)) == [302] + [410] * (THREADS - 1)
    (received,) = [answer_of(answer) for answer in answers if status(answer) == 302]  # type: ignore[arg-type]
    codes = Grant.objects.filter(application=flow.client).count()
    assert (codes, received.get("error")) == ((1, None) if "code" in received else (0, "access_denied"))


def exchange_while_the_client_is_deleted(cast: Cast, chance: Random) -> None:
    """Each code gives tokens once at most, and none of them outlives the client."""
    flow = make_flow(cast)
    codes = [flow.code() for _ in range(CODES)] * CODES
    redeeming = [partial(flow.redeem, code) for code in codes]
    *answers, _ = in_the_middle(chance, redeeming, partial(delete_public, cast, flow.client))
    given = checked(answers, {INVALID_GRANT, INVALID_CLIENT})
    assert_once_each(codes, answers)
    assert_dead(given, flow.client)
    assert refusal(flow.redeem(codes[0])) == INVALID_CLIENT


def refresh_while_the_client_is_deleted(cast: Cast, chance: Random) -> None:
    """As many as the grace period allows, at most, and none of them outlives the client."""
    flow = make_flow(cast)
    first = flow.tokens()
    refreshing = [partial(flow.refresh, first["refresh_token"])] * (THREADS - 1)
    *answers, _ = in_the_middle(chance, refreshing, partial(delete_public, cast, flow.client))
    given = checked(answers, {INVALID_GRANT, INVALID_CLIENT})
    assert len(given) <= GRACE_CHILDREN
    assert_dead([first, *given], flow.client)
    assert refusal(flow.refresh(first["refresh_token"])) == INVALID_CLIENT


def poll_while_the_client_is_deleted(cast: Cast, chance: Random) -> None:
    """One poll gets tokens at most, and they do not outlive the service client."""
    device = start_device(make_service(cast))
    assert device.decide(cast.client("member")).status_code == 200
    client = device.service.client
    removing = partial(delete_service_client, actor=cast.user("owner"), client=client)
    *answers, _ = in_the_middle(chance, [device.poll] * (THREADS - 1), removing)
    given = checked(answers, {INVALID_GRANT, INVALID_CLIENT})
    assert len(given) <= 1
    assert_dead(given, client)
    assert refusal(device.poll()) == INVALID_CLIENT


def exchange_while_the_member_is_removed(cast: Cast, chance: Random) -> None:
    """Each code gives tokens once at most, and none of them outlives the membership, nor comes back with it."""
    flow = make_flow(cast)
    codes = [flow.code() for _ in range(CODES)] * CODES
    *answers, _ = in_the_middle(chance, [partial(flow.redeem, code) for code in codes], partial(remove, cast))
    given = checked(answers, {INVALID_GRANT})
    assert_once_each(codes, answers)
    assert_dead(given, flow.client)
    join_again(cast)
    assert {refusal(flow.redeem(code)) for code in set(codes)} == {INVALID_GRANT}
    assert_dead(given, flow.client)


def refresh_while_the_member_is_removed(cast: Cast, chance: Random) -> None:
    """As many as the grace period allows, at most, and none of them outlives the membership, nor comes back with it."""
    flow = make_flow(cast)
    first = flow.tokens()
    refreshing = [partial(flow.refresh, first["refresh_token"])] * (THREADS - 1)
    *answers, _ = in_the_middle(chance, refreshing, partial(remove, cast))
    given = checked(answers, {INVALID_GRANT})
    assert len(given) <= GRACE_CHILDREN
    join_again(cast)
    assert_dead([first, *given], flow.client)
    assert refusal(flow.refresh(first["refresh_token"])) == INVALID_GRANT


def approve_while_the_member_is_removed(cast: Cast, chance: Random) -> None:
    """Approved once or not at all; a removed member gets the same error as a stranger."""
    device = start_device(make_service(cast))
    deciding = [partial(device.decide, cast.client("member")) for _ in range(THREADS - 1)]
    *answers, _ = in_the_middle(chance, deciding, partial(remove, cast))
    assert set(map(status, answers)) <= {200, 404}
    entries = AdminAuditEntry.objects.filter(event_type="device.approved", target_id=str(device.service.client.pk))
    assert entries.count() == (device.row.decision == "approved")
    join_again(cast)
    if 200 in map(status, answers):
        assert device.poll().status_code == 200
    else:
        assert refusal(device.poll()) == (400, "authorization_pending")


RACES: dict[str, Callable[[Cast, Random], None]] = {
    race.__name__: race
    for race in (
        exchange_a_code,
        refresh_in_the_grace_period,
        poll_after_the_approval,
        approve_and_deny,
        allow_and_cancel,
        exchange_while_the_client_is_deleted,
        refresh_while_the_client_is_deleted,
        poll_while_the_client_is_deleted,
        exchange_while_the_member_is_removed,
        refresh_while_the_member_is_removed,
        approve_while_the_member_is_removed,
    )
}


@pytest.fixture
def patient_limits(settings: Settings) -> None:
    """Wrong codes and requests of fifty threads are not what is counted here."""
    settings.USER_CODE_MISSES = THREADS * ROUNDS * 10
    for name in ("BACKSTOP", "REFUSED_TOKEN_REQUESTS", "TOKENS_OF_CLIENT"):
        setattr(settings, name, Rule(f"{name} of races", limit=1_000_000, window_s=60))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("patient_limits")
@pytest.mark.parametrize("race", RACES)
def test_every_round_ends_as_documented(committed_cast: Cast, race: str) -> None:
    for number in range(1, ROUNDS + 1):
        try:
            RACES[race](committed_cast, Random(f"{race} {number}"))
        except AssertionError as fault:
            raise AssertionError(f"{race}, round {number} of {ROUNDS}: {fault}") from fault


def in_the_middle(chance: Random, works: list[Any], removing: Callable[[], object]) -> list[Any]:
    """The results of all the works and of `removing`, which begins a moment after them and goes well."""
    pause_s = chance.uniform(0, LATEST_START_S)

    def later() -> object:
        time.sleep(pause_s)
        return removing()

    results = at_once(*works, later)
    assert not isinstance(results[-1], Exception), results[-1]
    return results


def checked(answers: list[Any], refusals: set[tuple[int, str]]) -> list[dict[str, Any]]:
    """The tokens that were given; everything else is one of `refusals`, and nothing is a fault of ours."""
    refused = {refusal(answer) if status(answer) >= 400 else (200, "") for answer in answers}
    assert refused <= {(200, ""), *refusals}, refused
    return [answer.json() for answer in answers if status(answer) == 200]


def status(answer: Any) -> int:
    """Its status; an exception in a thread is the test's failure."""
    if isinstance(answer, Exception):
        raise AssertionError(f"a thread ended with {answer!r}") from answer
    return int(answer.status_code)


def assert_once_each(codes: list[str], answers: list[Any]) -> None:
    """No code gave tokens twice."""
    used = [code for code, answer in zip(codes, answers, strict=True) if status(answer) == 200]
    assert len(used) == len(set(used))


def assert_dead(pairs: list[dict[str, Any]], client: Client) -> None:
    """None of the access tokens is let in, and the client holds nothing that could bring another."""
    for pair in pairs:
        with pytest.raises(InvalidBearer):
            load_identity(pair["access_token"])
    assert not TokenFamily.objects.filter(client_id=client.pk).exists()
    assert not AccessToken.objects.filter(application_id=client.pk).exists()
    assert not RefreshToken.objects.filter(application_id=client.pk).exists()


def delete_public(cast: Cast, client: Client) -> None:
    """Support staff delete a client that registered itself."""
    delete_registered_client(actor=cast.user("owner").as_actor(), client_pk=client.pk)


def remove(cast: Cast) -> None:
    """The owner removes the member."""
    remove_member(actor=cast.user("owner"), organization=cast.org, user_id=cast.user("member").pk)


def join_again(cast: Cast) -> None:
    """The member is one again, for the next round."""
    cast.org.memberships.create(user=cast.user("member"))

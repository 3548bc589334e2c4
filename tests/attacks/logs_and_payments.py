"""Rows 56 to 60: the provider's webhook, the logs, hostile names, and codes of earlier plans."""

from __future__ import annotations

import csv
import io
import json
from typing import Any
from urllib.parse import quote

import httpx

from billing.models import ProviderEvent, Subscription
from gateway.lib import clock, secrets
from tests.api.audit.log_rows import add_call, add_change
from tests.attacks.refusals import refused
from tests.attacks.table import attack
from tests.attacks.world import World
from tests.factories.billing import PATH, SETTINGS, event, signature, subscription, told

OF_AN_EVENT = ("billing.ProviderEvent", "billing.Subscription", "audit.AdminAuditEntry")


def deliver(world: World, body: bytes, header: str | None) -> httpx.Response:
    headers = [] if header is None else [("stripe-signature", header)]
    return world.send("POST", PATH, content=body, headers=headers)


def paying(world: World) -> None:
    for name, value in SETTINGS.items():
        setattr(world.settings, name, value)
    Subscription.objects.create(organization_id=world.cast.org.pk, customer_id="cus_1")


def now_s() -> int:
    return int(clock.now().timestamp())


BAD_SIGNATURES: dict[str, Any] = {
    "none": lambda body: (body, None),
    "wrong": lambda body: (body, signature(body, secret="whsec_other")),
    "without a time": lambda body: (body, signature(body).partition(",")[2]),
    "301 seconds old": lambda body: (body, signature(body, at=now_s() - 302)),
    "of the future": lambda body: (body, signature(body, at=now_s() + 302)),
    "one byte changed": lambda body: (body.replace(b"sub_1", b"sub_2"), signature(body)),
    "two that are wrong": lambda body: (body, f"{signature(body, secret='a')},v1={'0' * 64}"),
}


@attack(56, BAD_SIGNATURES)
def an_event_with_a_bad_signature(world: World, bend: Any) -> None:
    paying(world)
    with world.watched():
        refused(deliver(world, *bend(json.dumps(told("active")).encode())), 400, "invalid_signature")


@attack(56)
def two_signatures_with_one_that_is_right(world: World) -> None:
    paying(world)
    body = json.dumps(told("active")).encode()
    time, _, right = signature(body).partition(",")
    with world.watched(*OF_AN_EVENT):
        answer = deliver(world, body, f"{time},v1={'0' * 64},{right}")
        assert (answer.status_code, answer.json()) == (200, {"received": True})


@attack(56)
def no_secret_is_set(world: World) -> None:
    paying(world)
    world.settings.BILLING_MODE = "manual"
    body = json.dumps(told("active")).encode()
    with world.watched():
        refused(deliver(world, body, signature(body)), 503, "billing_unavailable")


@attack(56)
def an_event_once_more(world: World) -> None:
    paying(world)
    body = json.dumps(told("active")).encode()
    assert deliver(world, body, signature(body)).status_code == 200
    with world.watched():
        answer = deliver(world, body, signature(body))
        assert (answer.status_code, answer.json()) == (200, {"received": True})


@attack(56)
def an_older_event_that_comes_later(world: World) -> None:
    paying(world)
    newer = event("customer.subscription.deleted", subscription("canceled"), created=now_s())
    older = told("active", created=now_s() - 60)
    for each in (newer, older):
        body = json.dumps(each).encode()
        assert deliver(world, body, signature(body)).status_code == 200
    with world.watched():
        assert Subscription.objects.get(organization=world.cast.org).status == "canceled"
        assert ProviderEvent.objects.count() == 2


QUERIES = {
    "limit=-1": "invalid",
    "limit=0": "invalid",
    "offset=-1": "invalid",
    "offset=100001": "narrow_the_range",
    "start=2026-02-01&end=2026-01-31": "invalid",
    "start=yesterday": "invalid",
    "end=2026-02-30": "invalid",
    "format=xml": "invalid",
    "cursor=' OR 1=1": "invalid",
    "user_id=a\x00b": "invalid",
}


@attack(57, {query: (query, error) for query, error in QUERIES.items()})
def a_bad_value_for_the_logs(world: World, asked: tuple[str, str]) -> None:
    query, error = asked
    escaped = quote(query, safe="=&")
    paths = ["/api/audit"] if query.startswith("user_id") else ["/api/audit", "/api/audit/admin"]
    with world.watched():
        for path in paths:
            refused(world.send("GET", f"{path}?{escaped}", who="admin"), 400, error)


@attack(57, ("limit=501", "limit=1e9", "limit=1000000000"))
def a_large_limit(world: World, query: str) -> None:
    with world.watched():
        answer = world.send("GET", f"/api/audit?{query}", who="admin")
        assert (answer.status_code, answer.json()["limit"]) == (200, 500)


@attack(57, ("", "&format=csv"))
def the_log_of_another_organization(world: World, more: str) -> None:
    add_call(world.cast.other_org.id, user_label="Foreign")
    with world.watched():
        for path in ("/api/audit", "/api/audit/admin"):
            answer = world.send("GET", f"{path}?org_id={world.cast.other_org.id}{more}", who="admin")
            refused(answer, 404, "not_found")


HOSTILE = {
    "a formula": "=cmd|'/C calc'!A0",
    "plus": "+1",
    "minus": "-1",
    "at": "@x",
    "a tab": "\ttab",
    "a return": "\rreturn",
    "quotes": 'say "hi", you',
    "a line end": "two\r\nlines",
    "right to left": "\u202egnp.exe",
}


@attack(58, HOSTILE)
def a_hostile_name_in_an_export(world: World, text: str) -> None:
    """Rows as an older writer might have left them: today's replaces line ends and hidden characters."""
    call, change = add_call(world.cast.org.id), add_change(world.cast.org.id)
    type(call).objects.filter(pk=call.pk).update(user_label=text, tool=text)
    type(change).objects.filter(pk=change.pk).update(actor_label=text, target_label=text)
    shown = f"'{text}" if text[0] in "=+-@\t\r" else text
    with world.watched():
        for path, names in (("/api/audit", ("user", "tool")), ("/api/audit/admin", ("actor", "target"))):
            answer = world.send("GET", f"{path}?format=csv", who="admin")
            assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
            reader = csv.DictReader(io.StringIO(answer.content.decode(), newline=""), strict=True)
            (row,) = list(reader)
            assert [row[name] for name in names] == [shown, shown]
            assert None not in row


CODES: dict[str, tuple[object, int, str]] = {
    "empty": ("", 400, "code_required"),
    "spaces": ("  ", 400, "code_required"),
    "a number": (5, 400, "invalid"),
    "unknown": ("x", 422, "invalid_code"),
    "SQL": ("' OR 1=1--", 422, "invalid_code"),
    "known": ("LAUNCH-2024", 409, "plan_already_active"),
}


@attack(60, CODES)
def a_code_of_an_earlier_plan(world: World, asked: tuple[object, int, str]) -> None:
    world.settings.LEGACY_CODE_SHA256 = (secrets.sha256("LAUNCH-2024"),)
    code, status, error = asked
    with world.watched():
        refused(world.send("POST", f"{world.org}/redeem-code", who="owner", body={"code": code}), status, error)


@attack(60)
def the_sixth_code_in_a_quarter_of_an_hour(world: World) -> None:
    path = f"{world.org}/redeem-code"
    with world.watched():
        for number in range(5):
            refused(world.send("POST", path, who="owner", body={"code": f"x{number}"}), 422, "invalid_code")
        answer = world.send("POST", path, who="owner", body={"code": "x"})
        refused(answer, 429, "rate_limited")
        assert 0 < int(answer.headers["Retry-After"]) <= 900

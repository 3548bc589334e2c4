"""Delivery: every record at least once and in order, whatever a platform answers. Spec: D98"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection, transaction

from audit.models import AdminAuditEntry, DeliveryHour, LogDestination, RefusedRecord, SentHour
from audit.shipping import delivery, destinations
from audit.shipping.batch import SUSPICIOUS
from audit.shipping.claims import claim_due, release
from audit.shipping.delivery import deliver
from audit.shipping.platforms.webhook import Webhook
from audit.shipping.results import bytes_left, prune_hours
from gateway.lib import clock
from gateway.lib.guarded_client import BadResponse, OutboundTimeout, Response
from gateway.lib.outbound import AddressRefused
from tests.api.audit.rows import ORG, OTHER_ORG
from tests.api.audit.shipping.stage import (
    ANA,
    PlayedPlatform,
    answers,
    change,
    deliver_due,
    lag_of,
    make_destination,
    record_calls,
    replay,
    until_readable,
)
from tests.factories.races import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def events_of(org_id: object = ORG) -> list[str]:
    rows = AdminAuditEntry.objects.filter(org_id=org_id, event_type__startswith="log_shipping.").order_by("id")
    return [row.event_type.removeprefix("log_shipping.") for row in rows]


def test_records_of_its_organization_alone_arrive_in_order_with_the_change_that_made_it() -> None:
    record_calls("before")
    destination = make_destination()
    record_calls("r-1", "r-2")
    record_calls("theirs", org_id=OTHER_ORG)
    record_calls("r-3")
    platform = PlayedPlatform()
    assert deliver_due(platform) == 4
    sent = [event for batch in platform.batches for event in batch]
    assert sent[0]["eventType"] == "log_shipping.created"
    assert [event["requestId"] for event in sent[1:]] == ["r-1", "r-2", "r-3"]
    assert deliver_due(platform) == 0, "nothing is sent twice"
    destination.refresh_from_db()
    assert (destination.status, destination.delivered, destination.claim) == ("ok", 4, None)
    assert destination.last_delivery_at is not None
    assert destination.last_error == ""
    assert lag_of(destination).records == 0


def test_two_organizations_get_what_is_theirs() -> None:
    make_destination(ORG)
    make_destination(OTHER_ORG)
    record_calls("ours")
    record_calls("theirs", org_id=OTHER_ORG)
    seen = []
    for pk, claim in claim_due():
        platform = PlayedPlatform()
        deliver(pk, claim, platform)
        seen.append(platform.accepted())
    assert sorted(seen) == [["ours"], ["theirs"]]


@pytest.mark.parametrize(
    "fault",
    [
        *answers(500, 503, 429, 408, 401, 403, 404, 302),
        OutboundTimeout("ReadTimeout"),
        BadResponse("RemoteProtocolError"),
        AddressRefused(),
    ],
    ids=lambda fault: str(getattr(fault, "status", type(fault).__name__)),
)
def test_a_failed_batch_is_sent_again_with_the_same_ids(fault: Response | Exception) -> None:
    destination = make_destination()
    record_calls("r-1")
    platform = PlayedPlatform([fault])
    with time_machine.travel(clock.now(), tick=False):
        assert deliver_due(platform) == 0
        assert deliver_due(platform) == 0, "it waits"
    destination.refresh_from_db()
    assert destination.failures == 1
    assert destination.last_error
    with time_machine.travel(clock.now() + timedelta(minutes=2), tick=False):
        assert deliver_due(platform) >= 2
    first, second = platform.batches[:2]
    assert [event["id"] for event in second[: len(first)]] == [event["id"] for event in first]
    destination.refresh_from_db()
    assert (destination.status, destination.failures, destination.last_error) == ("ok", 0, "")


def test_a_wish_of_the_platform_is_obeyed() -> None:
    destination = make_destination()
    platform = PlayedPlatform([Response(429, {"Retry-After": "120"}, b"")])
    began = clock.now()
    deliver_due(platform)
    destination.refresh_from_db()
    assert 119 <= (destination.next_attempt_at - began).total_seconds() <= 125


def test_waits_grow_to_five_minutes_and_an_outage_is_audited_once_until_it_is_over() -> None:
    destination = make_destination()
    platform = PlayedPlatform(list(answers(*[503] * 14)))
    waits = []
    with time_machine.travel(clock.now(), tick=False) as now:
        for _ in range(14):
            deliver_due(platform)
            destination.refresh_from_db()
            waits.append((destination.next_attempt_at - clock.now()).total_seconds())
            now.move_to(destination.next_attempt_at)
        assert destination.status == "failing"
        assert events_of() == ["created", "delivery_failed"]
        deliver_due(platform)
    assert 0.5 <= waits[0] <= 1
    assert 150 <= waits[-1] <= max(waits) <= 300
    assert events_of() == ["created", "delivery_failed", "recovered"]


def test_a_poisoned_record_is_set_aside_and_the_others_arrive() -> None:
    destination = make_destination()
    record_calls(*(f"r-{n}" for n in range(20)))
    platform = PlayedPlatform(refuses={"r-7"})
    assert deliver_due(platform) == 21
    destination.refresh_from_db()
    assert (destination.delivered, destination.refused, destination.status) == (20, 1, "ok")
    refused = RefusedRecord.objects.get()
    assert (refused.log, refused.reason) == ("requests", "422: bad field")
    assert DeliveryHour.objects.get().refused == 1


def test_a_platform_that_refuses_everything_loses_nothing() -> None:
    destination = make_destination()
    names = {f"r-{n}" for n in range(40)}
    deliver_due(PlayedPlatform())
    record_calls(*sorted(names))
    platform = PlayedPlatform(refuses=names)
    assert deliver_due(platform) == 0
    destination.refresh_from_db()
    assert (destination.refused, destination.status, lag_of(destination).records) == (0, "failing", 42 - 1)


def test_a_single_record_that_is_refused_again_and_again_is_no_wall() -> None:
    destination = make_destination()
    deliver_due(PlayedPlatform())
    record_calls("r-1")
    platform = PlayedPlatform(refuses={"r-1"})
    with time_machine.travel(clock.now(), tick=False) as now:
        for _ in range(6):
            deliver_due(platform)
            destination.refresh_from_db()
            now.move_to(max(destination.next_attempt_at, clock.now()))
        record_calls("r-2")
        deliver_due(platform)
    destination.refresh_from_db()
    assert (destination.refused, destination.status) == (1, "ok")
    assert platform.accepted()[-1] == "r-2"


def test_a_day_without_the_platform_loses_nothing_and_the_oldest_of_a_longer_outage_are_counted() -> None:
    destination = make_destination()
    deliver_due(PlayedPlatform())
    began = clock.now()
    with time_machine.travel(began, tick=False) as now:
        broken = PlayedPlatform(list(answers(*[503] * 1000)))
        record_calls("first", timestamp=clock.now())
        for hours in range(1, 24):
            now.move_to(began + timedelta(hours=hours))
            deliver_due(broken)
        destination.refresh_from_db()
        assert (destination.skipped, lag_of(destination).records) == (0, 2)
        record_calls("later", timestamp=clock.now())
        for minutes in range(0, 180, 6):
            now.move_to(began + timedelta(hours=24, minutes=minutes))
            deliver_due(broken)
        platform = PlayedPlatform()
        now.move_to(began + timedelta(hours=27, minutes=6))
        deliver_due(platform)
    destination.refresh_from_db()
    assert platform.accepted()[-1] == "later"
    assert "first" not in platform.accepted()
    assert (destination.skipped, destination.status) == (2, "ok"), "the call, and the note of the failure"
    assert "records_skipped" in events_of()


def test_a_destination_deleted_in_mid_delivery_ends_it() -> None:
    make_destination()
    record_calls("r-1")
    platform = PlayedPlatform(meanwhile=lambda: destinations.delete_all_of(ORG))
    assert deliver_due(platform) == 0
    assert not LogDestination.objects.exists()
    assert not DeliveryHour.objects.exists()


def test_a_change_in_mid_delivery_takes_the_claim_away() -> None:
    destination = make_destination()
    record_calls("r-1")
    platform = PlayedPlatform(meanwhile=lambda: change(destination, enabled=False))
    assert deliver_due(platform) == 0
    platform.meanwhile = None
    destination.refresh_from_db()
    assert (destination.delivered, destination.enabled) == (0, False)
    assert deliver_due(platform) == 0, "a paused destination gets nothing"
    change(destination, enabled=True)
    assert deliver_due(platform) == 4, "created, the call, the pause and its end"


def test_a_replay_sends_again_what_came_since() -> None:
    destination = make_destination()
    with time_machine.travel(clock.now(), tick=False) as now:
        record_calls("old", timestamp=clock.now())
        now.shift(3600)
        since = clock.now() - timedelta(seconds=1)
        record_calls("young", timestamp=clock.now())
        platform = PlayedPlatform()
        now.shift(60)
        deliver_due(platform)
        replay(destination, since)
        deliver_due(platform)
    assert platform.accepted() == ["old", "young", "young"]


def test_no_two_processes_deliver_to_one_destination() -> None:
    make_destination()
    first = claim_due()
    assert len(first) == 1
    assert claim_due() == [], "it is taken"
    release(*first[0])
    assert len(claim_due()) == 1
    with time_machine.travel(clock.now() + timedelta(seconds=61), tick=False):
        (again,) = claim_due()
        assert again[1] != first[0][1], "the claim of a dead process ends"
        assert deliver(*first[0], PlayedPlatform()) == 0, "and its holder, if it lives, does nothing"


def test_messages_that_come_at_once_give_no_slot_twice() -> None:
    for n in range(12):
        make_destination(OTHER_ORG if n % 2 else ORG, label=f"d {n}")
    claimed = at_once(*[lambda: claim_due(slots=4)] * 8)
    assert not any(isinstance(each, Exception) for each in claimed), claimed
    # Half of the slots are for destinations that are known to answer.
    assert sum(map(len, claimed)) == 2  # type: ignore[arg-type]
    assert claim_due(slots=4) == []


def test_a_destination_that_is_being_changed_is_claimed_the_next_time() -> None:
    changed, other = make_destination(ORG), make_destination(OTHER_ORG)
    with transaction.atomic():
        LogDestination.objects.select_for_update().get(pk=changed.pk)
        if connection.vendor == "postgresql":  # SQLite has one writer at a time
            [found] = at_once(claim_due)
            assert [pk for pk, _ in found] == [other.pk]  # type: ignore[union-attr]
    assert {pk for pk, _ in claim_due()} >= {changed.pk}


def test_destinations_that_do_not_answer_leave_half_of_the_slots() -> None:
    good = make_destination()
    deliver_due(PlayedPlatform())
    for n in range(50):
        make_destination(OTHER_ORG if n % 2 else ORG, label=f"dead {n}")
    record_calls("r-1")
    claimed = claim_due(slots=8)
    assert len(claimed) <= 8
    doubtful = [pk for pk, _ in claimed if pk != good.pk]
    assert len(doubtful) <= 4
    assert good.pk in {pk for pk, _ in claimed}


def test_an_organization_sends_so_many_bytes_in_an_hour(settings: Any) -> None:
    settings.SHIPPING_BYTES_PER_HOUR = 1
    ours, theirs = make_destination(ORG), make_destination(OTHER_ORG)
    assert deliver_due(PlayedPlatform()) == 2, "a batch that has begun is sent"
    record_calls("r-1")
    record_calls("r-2", org_id=OTHER_ORG)
    platform = PlayedPlatform()
    assert deliver_due(platform) == 0
    assert platform.batches == []
    ours.refresh_from_db()
    assert "hourly delivery limit" in ours.last_error
    assert (ours.status, ours.failures) == ("ok", 0)
    with time_machine.travel(clock.now() + timedelta(hours=1), tick=False):
        assert deliver_due(platform) == 2
    assert sorted(platform.accepted()) == ["r-1", "r-2"]
    for each in (ours, theirs):
        each.refresh_from_db()
        assert each.last_error == ""


def test_what_was_sent_in_vain_or_to_a_deleted_destination_is_counted_too(settings: Any) -> None:
    destination = make_destination(ORG)
    deliver_due(PlayedPlatform([Response(503, {}, b"")]))
    in_vain = bytes_left(ORG)
    assert 0 < in_vain < settings.SHIPPING_BYTES_PER_HOUR
    platform = PlayedPlatform(meanwhile=lambda: destination.delete())
    with time_machine.travel(clock.now() + timedelta(seconds=2), tick=False):
        assert deliver_due(platform) == 0
        assert len(platform.batches) == 1
        assert bytes_left(ORG) < in_vain
        settings.SHIPPING_BYTES_PER_HOUR -= bytes_left(ORG)
        make_destination(ORG)
        make_destination(OTHER_ORG)
        record_calls("ours")
        record_calls("theirs", org_id=OTHER_ORG)
        platform = PlayedPlatform()
        deliver_due(platform)
        assert platform.accepted() == ["theirs"], "a new destination has no new allowance"
    with time_machine.travel(clock.now() + timedelta(hours=1), tick=False):
        deliver_due(platform)
    assert platform.accepted() == ["theirs", "ours"]


def test_counted_bytes_go_with_their_organization_or_after_two_days() -> None:
    make_destination(ORG)
    make_destination(OTHER_ORG)
    deliver_due(PlayedPlatform())
    assert set(SentHour.objects.values_list("org_id", flat=True)) == {ORG, OTHER_ORG}
    destinations.delete_all_of(ORG)
    assert SentHour.objects.get().org_id == OTHER_ORG
    assert prune_hours() == 0
    with time_machine.travel(clock.now() + timedelta(days=2, hours=1), tick=False):
        assert prune_hours() == 2, "the destination's hour, too"
    assert not SentHour.objects.exists()


def test_a_platform_that_refuses_one_record_after_another_keeps_nearly_all(settings: Any) -> None:
    destination = make_destination()
    deliver_due(PlayedPlatform())
    platform = PlayedPlatform(list(answers(*[422] * 1000)))
    with time_machine.travel(clock.now(), tick=False) as now:
        for n in range(40):
            record_calls(f"r-{n}")
            now.shift(600)
            deliver_due(platform)
    destination.refresh_from_db()
    assert destination.refused < SUSPICIOUS
    assert destination.status == "failing"
    assert destination.refused + lag_of(destination).records == 41, "40 calls, and the note of the failure"


@pytest.mark.parametrize("wish", ["Wed, 21 Oct 99999999999999999999 07:28:00 GMT", "soon", "9" * 400, "-5"])
def test_an_absurd_wish_is_a_failure_like_others(wish: str) -> None:
    destination = make_destination()
    assert deliver_due(PlayedPlatform([Response(503, {"Retry-After": wish}, b"")])) == 0
    destination.refresh_from_db()
    assert (destination.failures, destination.status) == (1, "retrying")
    assert destination.next_attempt_at > destination.created_at


def test_an_answer_that_cannot_be_read_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    destination = make_destination()

    def read(*_: object) -> None:
        raise RecursionError

    with monkeypatch.context() as patch:
        patch.setattr(Webhook, "read", read)
        assert deliver_due(PlayedPlatform()) == 0
    destination.refresh_from_db()
    assert (destination.failures, destination.last_error) == (1, "The response couldn’t be read.")


def test_a_slow_platform_ends_its_batch_and_gets_smaller_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    destination = make_destination()
    record_calls(*(f"r-{n}" for n in range(600)))
    platform = PlayedPlatform(refuses={f"r-{n}" for n in range(0, 600, 2)})
    monkeypatch.setattr(delivery, "LONGEST_BATCH_S", 0.0)
    assert deliver_due(platform) == 0
    destination.refresh_from_db()
    assert (destination.failures, destination.last_error) == (1, delivery.TOO_SLOW)
    with time_machine.travel(clock.now() + timedelta(minutes=5), tick=False):
        deliver_due(platform)
    assert [len(batch) for batch in platform.batches] == [500, 250]


def test_a_replay_leaves_out_nothing_that_waits() -> None:
    destination = make_destination()
    with time_machine.travel(clock.now(), tick=False) as now:
        record_calls("waiting")
        now.shift(7200)
        record_calls("young")
        replay(destination, clock.now() - timedelta(hours=1))
        platform = PlayedPlatform()
        deliver_due(platform)
    assert platform.accepted() == ["waiting", "young"]


@pytest.mark.parametrize(("hours", "sent"), [(0.01, ["old", "new"]), (25, ["new"])])
def test_only_a_long_pause_leaves_out_old_records(hours: float, sent: list[str]) -> None:
    paused_for = timedelta(hours=hours)
    destination = make_destination()
    with time_machine.travel(clock.now(), tick=False) as now:
        record_calls("old")
        now.shift(timedelta(hours=30) - paused_for)
        change(destination, enabled=False)
        now.shift(paused_for)
        record_calls("new")
        change(destination, enabled=True)
        platform = PlayedPlatform()
        deliver_due(platform)
    assert platform.accepted() == sent


def test_a_platform_that_repeats_its_address_and_headers_shows_no_secret() -> None:
    with transaction.atomic():
        destination = destinations.create(
            org_id=ORG,
            actor=ANA,
            label="OTLP",
            platform="otlp",
            endpoint_url="https://otlp.example.com/hooks/5ecret-path-9f",
            config={"headers": "X-Key: hk9988776655, X-Other: Zk3-other-secret"},
        )
    until_readable()
    body = b"no route /hooks/5ecret-path-9f for key hk9988776655 (Zk3-other-secret)"
    deliver_due(lambda *_, **__: Response(401, {}, body))
    destination.refresh_from_db()
    assert destination.last_error.startswith("401: no route [hidden] for key [hidden]")
    for secret in ("5ecret", "hk9988", "Zk3"):
        assert secret not in destination.last_error

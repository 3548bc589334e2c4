"""Verdicts in one process and between processes, by way of each store."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest
from django.conf import settings

from gateway.coordination.redis_store import RedisStore
from gateway.coordination.sqlite_store import SQLiteStore
from gateway.coordination.store import CoordinationStore, CoordinationUnavailable
from proxy.vendors.destination import PoolKey
from proxy.vendors.era_verdicts import DAY_S, PROVISIONAL_S, EraVerdicts, stored_verdicts

ORG, OTHER_ORG, CREDENTIAL = (uuid.UUID(int=number) for number in (1, 2, 3))
URL = "https://acme.example.com/mcp"
MODERN, EARLIER = "2026-07-28", "2025-11-25"


class Clock:
    now_s = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(params=["file", *(["redis"] if settings.REDIS_URL else [])])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CoordinationStore]:
    made: CoordinationStore
    if request.param == "redis":
        made = RedisStore(settings.REDIS_URL, lambda: uuid.uuid4().hex, prefix=f"eras-{uuid.uuid4().hex}:")
    else:
        made = SQLiteStore(tmp_path / "coordination.sqlite3", lambda: uuid.uuid4().hex)
    yield made
    await made.aclose()


def key(
    org: uuid.UUID = ORG, url: str = URL, credential: uuid.UUID = CREDENTIAL, headers: Mapping[str, str] | None = None
) -> PoolKey:
    return PoolKey.of(org, "acme", credential, url, headers or {})


def process(store: CoordinationStore | None, clock: Clock, *, bound: int = 100) -> EraVerdicts:
    return EraVerdicts(store, b"secret of the deployment", max_verdicts=bound, now_s=clock)


async def test_a_verdict_is_known_to_every_process_with_its_date(store: CoordinationStore) -> None:
    clock = Clock()
    first, second = process(store, clock), process(store, clock)
    assert await first.known(key()) is None
    kept = await first.keep(key(), MODERN)
    clock.now_s += 30
    found = await second.known(key())
    assert found == kept == await first.known(key())
    assert found is not None
    assert (found.version, found.is_modern, found.at_s) == (MODERN, True, 1_790_000_000.0)
    (shown,) = stored_verdicts(store, [("acme", CREDENTIAL), ("acme", uuid.UUID(int=9))]).values()
    assert shown == kept


@pytest.mark.parametrize(
    "other",
    [key(org=OTHER_ORG), key(url="https://other.example.com/mcp"), key(credential=uuid.UUID(int=4))],
    ids=["organization", "address", "credential"],
)
async def test_it_is_of_one_organization_address_and_credential(store: CoordinationStore, other: PoolKey) -> None:
    clock = Clock()
    await process(store, clock).keep(key(), MODERN)
    assert await process(store, clock).known(other) is None


async def test_a_renewed_token_keeps_it(store: CoordinationStore) -> None:
    clock = Clock()
    await process(store, clock).keep(key(headers={"Authorization": "Bearer one"}), MODERN)
    assert await process(store, clock).known(key(headers={"Authorization": "Bearer two"})) is not None


async def test_that_a_vendor_is_of_an_earlier_revision_is_believed_for_a_day(store: CoordinationStore) -> None:
    clock = Clock()
    verdicts = process(store, clock)
    kept = await verdicts.keep(key(), EARLIER)
    await verdicts.keep(key(org=OTHER_ORG, credential=uuid.UUID(int=4)), MODERN)
    clock.now_s += DAY_S - 1
    assert await verdicts.known(key()) == kept
    assert not verdicts.is_outdated(kept)
    clock.now_s += 1
    assert await verdicts.known(key()) is None
    assert verdicts.is_outdated(kept)
    assert await verdicts.known(key(org=OTHER_ORG, credential=uuid.UUID(int=4))) is not None
    clock.now_s -= 2 * DAY_S
    assert await verdicts.known(key()) is None, "a date in the future is no reason to believe it"


async def test_an_answer_that_says_nothing_stays_in_the_process_and_is_short(store: CoordinationStore) -> None:
    clock = Clock()
    verdicts = process(store, clock)
    await verdicts.keep(key(), EARLIER, is_provisional=True)
    assert await process(store, clock).known(key()) is None
    assert await verdicts.known(key()) is not None
    clock.now_s += PROVISIONAL_S
    assert await verdicts.known(key()) is None


async def test_a_verdict_that_proved_wrong_is_given_up_until_a_newer_one_is_there(store: CoordinationStore) -> None:
    clock = Clock()
    first, second = process(store, clock), process(store, clock)
    wrong = await first.keep(key(), EARLIER)
    assert await second.known(key()) == wrong
    clock.now_s += 60
    for each in (first, second):
        each.give_up(key(), wrong)
        assert await each.known(key()) is None, "the one in the store is as old"
    right = await first.keep(key(), MODERN)
    assert await second.known(key()) == right, "asked by the other process"
    second.give_up(key(), wrong)
    assert await second.known(key()) == right, "a call that was refused long ago says nothing about the newer one"


async def test_a_mere_doubt_waits(store: CoordinationStore) -> None:
    clock = Clock()
    verdicts = process(store, clock)
    kept = await verdicts.keep(key(), MODERN)
    assert not verdicts.may_doubt(kept)
    clock.now_s += 10
    assert verdicts.may_doubt(kept)


async def test_the_address_is_not_in_the_store(store: CoordinationStore) -> None:
    kept = await process(store, Clock()).keep(key(), MODERN)
    assert kept.place != key().place
    assert URL.encode() not in b"".join(store.health([f"era:acme:{CREDENTIAL}"]).values())


async def test_a_value_of_another_release_is_none(store: CoordinationStore) -> None:
    store.put_health(f"era:acme:{CREDENTIAL}", b"\xff not ours", 60)
    assert await process(store, Clock()).known(key()) is None
    assert stored_verdicts(store, [("acme", CREDENTIAL)]) == {}


class AwayStore:
    """The part of a store that verdicts use, while it does not answer."""

    def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
        raise CoordinationUnavailable("away")

    def health(self, vendors: Sequence[str]) -> Mapping[str, bytes]:
        raise CoordinationUnavailable("away")


async def test_without_the_store_the_process_knows_its_own() -> None:
    clock = Clock()
    for store in (AwayStore(), None):
        verdicts = process(store, clock, bound=1)  # type: ignore[arg-type]
        assert await verdicts.known(key()) is None
        kept = await verdicts.keep(key(), MODERN)
        assert await verdicts.known(key()) == kept
        await verdicts.keep(key(org=OTHER_ORG), EARLIER)
        assert await verdicts.known(key()) is None, "past the bound the oldest leaves"

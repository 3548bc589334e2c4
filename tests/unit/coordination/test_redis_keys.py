"""Keys of one command are in one slot of a cluster, and a process of the release before is heard and told.

Spec: D21 · docs/decisions/0052
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import hiredis
import pytest
from redis.crc import key_slot

from gateway.coordination import epochs, hash_tags
from gateway.coordination.redis_keys import RedisKeys
from gateway.coordination.redis_store import RedisStore
from gateway.coordination.rules import Rule
from proxy.cache.keys import epoch_name
from tests.fakes.redis_server import RedisServer, is_installed, redis_server

ORG, OTHER = "11111111-aaaa-4aaa-8aaa-111111111111", "22222222-bbbb-4bbb-8bbb-222222222222"
SERVICE_CLIENT, PERSON = f"svc:{ORG}:client", "33333333-cccc-4ccc-8ccc-333333333333"
RULES = [Rule("tools", limit=5_000, window_s=3600), Rule("tools", limit=50, window_s=3600)]
with_redis = pytest.mark.skipif(not is_installed(), reason="redis-server is not installed")


def new_value() -> str:
    return uuid.uuid4().hex


def names_of(subject: str, org_id: str = ORG) -> tuple[str, ...]:
    """The epochs that one call reads."""
    results = epoch_name(org_id, f"team:{uuid.UUID(int=7)}", "acme")
    return epochs.subject(subject), epochs.organization(org_id), results


def parsed(packed: bytes) -> list[str]:
    reader = hiredis.Reader(encoding="utf-8")
    reader.feed(packed)
    found = reader.gets()
    assert isinstance(found, list)
    return found


def slots(packed: bytes) -> set[int]:
    """The slots of a command's keys."""
    name, *arguments = parsed(packed)
    if name in ("EVALSHA", "EVAL"):
        keys = arguments[2 : 2 + int(arguments[1])]
    else:
        keys = arguments if name == "MGET" else arguments[:1]
    assert keys
    return {key_slot(key.encode()) for key in keys}


class Recorded:
    """Stands for the connection of a store; it has every value that is asked for."""

    def __init__(self) -> None:
        self.commands: list[bytes] = []

    async def execute_all(self, commands: Sequence[bytes]) -> list[object]:
        self.commands.extend(commands)
        return [self._reply(*parsed(command)) for command in commands]

    @staticmethod
    def _reply(name: str, *arguments: str) -> object:
        if name == "MGET":
            return [b"value" for _ in arguments]
        if name == "SET":
            return b"OK"
        return [1, 9, 0, *(b"value" for _ in range(int(arguments[1]) - 1))]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], tuple[RedisStore, Recorded]]:
    def made(is_cluster: bool) -> tuple[RedisStore, Recorded]:
        store, connection = RedisStore("redis://127.0.0.1:9/0", new_value, is_cluster=is_cluster), Recorded()
        monkeypatch.setattr(store, "_pipelined", lambda: connection)
        return store, connection

    return made


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("subject", "commands"), [(SERVICE_CLIENT, 1), (PERSON, 2)])
async def test_the_script_of_an_admission_touches_one_slot(
    recorded: Callable[[bool], tuple[RedisStore, Recorded]], rule: Rule, subject: str, commands: int
) -> None:
    """An agent's admission is one command. A person's limit counts in all organizations, so it has another slot."""
    store, connection = recorded(True)
    admission = await store.admit(rule, subject, names_of(subject))
    assert admission.epochs == ("value",) * 3
    assert [len(slots(command)) for command in connection.commands] == [1] * commands
    script = slots(store._eval_command(rule, subject, names_of(subject)[: 3 if commands == 1 else 1]))
    assert script == slots(connection.commands[0]) == {key_slot((ORG if commands == 1 else PERSON).encode())}
    assert slots(connection.commands[-1]) == {key_slot(ORG.encode())}


async def test_every_other_command_touches_one_slot(
    recorded: Callable[[bool], tuple[RedisStore, Recorded]],
) -> None:
    store, connection = recorded(True)
    names = [*names_of(SERVICE_CLIENT), *names_of(PERSON, OTHER), epochs.CATALOG, epochs.SIGNING_KEYS]
    assert await store.read_epochs(names) == ("value",) * len(names)
    assert await store.begin_epochs(names) == ("value",) * len(names)
    await store.renew_epoch(names[2])
    assert len(connection.commands) > len(names)
    assert [command for command in connection.commands if len(slots(command)) != 1] == []


def test_organizations_are_spread_over_the_slots() -> None:
    keys = RedisKeys("gateway:", with_earlier=False)
    found = {key_slot(keys.epoch(epochs.organization(str(uuid.UUID(int=number)))).encode()) for number in range(500)}
    assert len(found) > 450


def test_names_and_their_tags() -> None:
    assert epochs.subject(SERVICE_CLIENT) == f"{{{ORG}}}subject:{SERVICE_CLIENT}"
    assert epochs.subject(PERSON) == f"{{{PERSON}}}subject:{PERSON}"
    assert [hash_tags.untagged(name) for name in (epochs.organization(ORG), epochs.CATALOG)] == [
        f"org:{ORG}",
        "catalog",
    ]
    keys = RedisKeys("gateway:", with_earlier=True)
    assert keys.window(RULES[0], SERVICE_CLIENT) == f"gateway:rate:tools:{{{ORG}}}{SERVICE_CLIENT}"
    assert keys.window(RULES[1], PERSON) == f"gateway:rate-log:tools:{{{PERSON}}}"
    assert keys.read([epochs.CATALOG]) == ["gateway:epoch:catalog"], "its name is the same in both releases"


# --- a rolling upgrade ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server() as made:
        yield made


@pytest.fixture
async def stores(server: RedisServer) -> AsyncIterator[tuple[RedisStore, RedisStore]]:
    """A store of this release and one of the release before, which knows no tags, on the same server."""
    server.ask("FLUSHALL")
    patient = {"operation_s": 5.0, "thread_s": 5.0}
    made = RedisStore(server.url, new_value, **patient), RedisStore(server.url, new_value, is_cluster=True, **patient)
    yield made
    for store in made:
        await store.aclose()
        for client in (store._sync, store._probe_client):
            client.close()


@with_redis
@pytest.mark.parametrize("subject", [SERVICE_CLIENT, PERSON])
@pytest.mark.parametrize("changed", [0, 1, 2])
async def test_a_bump_by_either_release_is_seen_by_both_at_the_next_call(
    server: RedisServer, stores: tuple[RedisStore, RedisStore], subject: str, changed: int
) -> None:
    """Revocations and writes alike: index 2 is the epoch of kept results."""
    new, old = stores
    names = names_of(subject)
    earlier = tuple(map(hash_tags.untagged, names))
    assert earlier[:2] == (f"subject:{subject}", f"org:{ORG}")
    for store, known in ((new, names), (old, earlier)):
        await store.begin_epochs(known)
    seen = [await new.read_epochs(names), await old.read_epochs(earlier)]
    assert server.ask("EXISTS", *(f"gateway:epoch:{name}" for name in earlier)) == 3
    for bumping, bumped in ((old, earlier[changed]), (new, names[changed])):
        for renew in (bumping.renew_epoch, None):
            if renew is None:
                bumping.bump_epochs([bumped])
            else:
                await renew(bumped)
            now = [
                (await new.admit(RULES[0], subject, names)).epochs,
                await old.read_epochs(earlier),
            ]
            assert now[0] == await new.read_epochs(names)
            for before, after in zip(seen, now, strict=True):
                assert before is not None
                assert after is not None
                assert [a != b for a, b in zip(before, after, strict=True)] == [n == changed for n in range(3)]
            seen = now


@with_redis
async def test_a_first_value_is_only_given_under_the_new_name(stores: tuple[RedisStore, RedisStore]) -> None:
    """An epoch that the release before knows is none of this one's: it would not be bumped under the new name."""
    new, old = stores
    name = epochs.organization(ORG)
    old.bump_epochs([hash_tags.untagged(name)])
    assert await new.read_epochs([name]) == ("",)
    begun = await new.begin_epochs([name])
    assert begun is not None
    assert begun[0]
    assert await new.begin_epochs([name]) == begun

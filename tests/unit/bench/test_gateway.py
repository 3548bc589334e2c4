"""How the gateway under test is set up: as `make run` does it, on data of its own, with limits out of reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.databases import SHARED_KEYS, back_ends, remove_keys
from bench.gateway import LIMITS, gateway_environment
from bench.preparation import CALLERS, catalog
from bench.processes import BenchFailed
from gateway.catalog.templates import vendor_headers
from tests.factories.catalog_text import parse_catalog


def test_the_environment_is_that_of_make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://production/db")
    monkeypatch.setenv("SECRET_KEY", "of the deployment in this shell")
    found = gateway_environment(8123, tmp_path, {})
    assert found["GATEWAY_MODE"] == "embedded"
    assert found["DJANGO_SETTINGS_MODULE"] == "gateway.settings"
    assert (found["VAR"], found["BASE_URL"]) == (str(tmp_path), "http://127.0.0.1:8123")
    assert found["CREDENTIAL_KEYS"]
    assert found["SECRET_KEY"] != "of the deployment in this shell"
    assert "DATABASE_URL" not in found
    assert LIMITS.items() <= found.items()


def test_named_back_ends_reach_it(tmp_path: Path) -> None:
    given = {"DATABASE_URL": "postgres://127.0.0.1/bench_1", "REDIS_URL": "redis://127.0.0.1/9"}
    assert given.items() <= gateway_environment(8123, tmp_path, given).items()


def test_without_names_the_back_ends_are_the_embedded_ones() -> None:
    with back_ends({"DATABASE_URL": "postgres://production/db"}) as found:
        assert found.environment == {}
        assert found.description == "SQLite (synchronous=FULL) and the embedded coordination store"


def test_a_database_server_that_does_not_answer_is_reported() -> None:
    with pytest.raises(BenchFailed, match="BENCH_DATABASE_URL"), back_ends({"BENCH_DATABASE_URL": "no address"}):
        pytest.fail("there is no such server")


def test_the_catalog_file_is_one_the_product_takes() -> None:
    (vendor,) = parse_catalog(catalog("http://127.0.0.1:9/mcp"))
    assert (vendor.slug, vendor.tool_prefix, vendor.url) == ("bench", "bench", "http://127.0.0.1:9/mcp")
    assert vendor_headers(vendor, {"apiKey": "secret"}) == {"X-Bench-Key": "secret"}
    assert CALLERS >= 2


class FakeRedis:
    """Enough of a client to remove keys from."""

    def __init__(self, *keys: str) -> None:
        self.keys = set(keys)

    def __enter__(self) -> FakeRedis:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def scan_iter(self, *, count: int) -> list[bytes]:
        return [key.encode() for key in sorted(self.keys)]

    def delete(self, key: bytes | str) -> None:
        self.keys.discard(key if isinstance(key, str) else key.decode())


@pytest.mark.parametrize(("keep", "is_left"), [(frozenset(), False), (SHARED_KEYS, True)])
def test_only_the_runs_own_keys_are_removed(
    keep: frozenset[str], is_left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = (f"0199c3a4-0000-7000-8000-00000000000{number}" for number in (1, 2))
    client = FakeRedis(
        f"gateway:rate:tools:svc:{own}:c", f"gateway:epoch:org:{own}", f"gateway:epoch:org:{other}", *SHARED_KEYS
    )
    monkeypatch.setattr("bench.databases.redis.Redis.from_url", lambda url, **options: client)
    remove_keys("redis://127.0.0.1/9", [own], keep=keep)
    assert client.keys == {f"gateway:epoch:org:{other}", *(SHARED_KEYS if is_left else ())}


def test_shared_keys_of_before_the_run_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier, made = "gateway:tools:list:earlier", "gateway:tools:index:made"
    client = FakeRedis(earlier, made, "gateway:queue:celery")
    monkeypatch.setattr("bench.databases.redis.Redis.from_url", lambda url, **options: client)
    remove_keys("redis://127.0.0.1/9", [], keep=frozenset({earlier}))
    assert client.keys == {earlier, "gateway:queue:celery"}

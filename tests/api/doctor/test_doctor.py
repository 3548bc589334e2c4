"""The doctor names each planted fault in one sentence, a sound deployment is sound, and broken checks stop no other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection

from audit.models import LogDestination, StreamCursor
from audit.shipping_models import DestinationStatus
from credentials.models import OrganizationDataKey
from gateway import postgresql_check
from gateway.coordination.models import PendingBump
from gateway.doctor import (
    clock_checks,
    database_checks,
    key_checks,
    provider_checks,
    redis_checks,
    runner,
    settings_checks,
    work_checks,
)
from gateway.doctor.catalog import CHECKS
from gateway.doctor.verdict import Check, Finding, Status, error, ok, warning
from gateway.keys.sealed_columns import key_fields
from gateway.lib import clock, guarded_client
from gateway.mail.models import OutgoingMail
from gateway.recovery.restore import MARK
from gateway.settings import workers
from oauth_ext.models import SigningKey
from orgs.models import AlertMessage
from tests.factories.cast import Cast
from tests.factories.tenant import connect, load_vendor
from tests.fakes.redis_server import RedisServer, is_installed, makes_clusters, redis_server

ROOT = Path(__file__).resolve().parents[3]
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
needs_server = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="asks PostgreSQL")
needs_redis = pytest.mark.skipif(not is_installed(), reason="redis-server is not installed")


def only(found: Sequence[Finding]) -> tuple[Status, str]:
    """The one finding."""
    [finding] = found
    return finding.status, finding.message


def is_sound(found: Sequence[Finding]) -> bool:
    return {finding.status for finding in found} <= {Status.OK}


# settings


def test_a_proxy_that_is_not_believed(settings: LazySettings) -> None:
    settings.HTTPS, settings.TRUSTED_PROXIES = True, ()
    status, message = only(settings_checks.proxy())
    assert (status, message.startswith("TRUSTED_PROXIES is empty")) == (Status.ERROR, True)
    settings.TRUSTED_PROXIES = ("10.0.0.0/8",)
    assert is_sound(settings_checks.proxy())


@pytest.mark.parametrize("network", ["0.0.0.0/0", "::/0", "10.0.0.0/4"])
def test_everybody_is_a_proxy(settings: LazySettings, network: str) -> None:
    settings.TRUSTED_PROXIES = (network,)
    status, message = only(settings_checks.proxy())
    assert (status, network in message) == (Status.ERROR, True)


def answering(status: int, body: bytes) -> Callable[..., guarded_client.Response]:
    return lambda *args, **kwargs: guarded_client.Response(status, {}, body)


def raising(fault: Exception) -> Callable[..., guarded_client.Response]:
    def send(*args: object, **kwargs: object) -> guarded_client.Response:
        raise fault

    return send


@pytest.mark.parametrize(
    ("send", "status", "words"),
    [
        (
            answering(200, json.dumps({"version": settings_checks.own_version()}).encode()),
            Status.OK,
            "answers with version",
        ),
        (answering(200, b'{"version": "9.9.9"}'), Status.WARNING, "9.9.9"),
        (answering(404, b"<html>"), Status.ERROR, "is not this service"),
        (raising(guarded_client.OutboundTimeout("x")), Status.WARNING, "does not answer"),
        (raising(guarded_client.CertificateRefused("expired")), Status.ERROR, "certificate"),
    ],
)
def test_the_address_leads_to_this_service(
    monkeypatch: pytest.MonkeyPatch, send: Any, status: Status, words: str
) -> None:
    monkeypatch.setattr(guarded_client, "send", send)
    found, message = only(settings_checks.base_url())
    assert (found, words in message) == (status, True)


def test_a_catalog_file_that_is_not_there(settings: LazySettings) -> None:
    settings.VENDOR_CATALOG = "/nowhere.toml"
    assert error("VENDOR_CATALOG names no readable file.") in settings_checks.settings_read()


def run_doctor(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "doctor", "--json"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "GATEWAY_MODE": "embedded", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("environment", "name"),
    [({"SECRET_KEY": "short"}, "SECRET_KEY"), ({"SECRET_KEY": "0123456789abcdef" * 3}, "CREDENTIAL_KEYS")],
)
def test_a_setting_that_is_missing_or_weak_is_a_verdict_too(
    tmp_path: Path, environment: dict[str, str], name: str
) -> None:
    done = run_doctor(VAR=str(tmp_path), **environment)
    [verdict] = json.loads(done.stdout)
    assert (done.returncode, verdict["check"], verdict["status"]) == (1, "settings", "error")
    assert name in verdict["message"]


# identity provider, vendors

PROVIDER = "https://idp.example"
DOCUMENT = {
    "issuer": PROVIDER,
    **dict.fromkeys(("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"), f"{PROVIDER}/x"),
    "keys": [{"kty": "RSA", "kid": "1"}],
}


@pytest.mark.parametrize(
    ("send", "words"),
    [
        (answering(200, json.dumps({**DOCUMENT, "issuer": "https://other.example"}).encode()), "another issuer"),
        (answering(200, json.dumps({**DOCUMENT, "keys": []}).encode()), "no key"),
        (answering(500, b""), "status 500"),
        (raising(guarded_client.OutboundTimeout("x")), "OutboundTimeout"),
    ],
)
def test_an_identity_provider_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, settings: LazySettings, send: Any, words: str
) -> None:
    settings.EMBEDDED = False
    settings.OIDC_OP_DISCOVERY_URL = f"{PROVIDER}/.well-known/openid-configuration"
    monkeypatch.setattr(guarded_client, "send", send)
    status, message = only(provider_checks.identity_provider())
    assert (status, words in message) == (Status.ERROR, True)


def test_an_identity_provider_that_answers(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    settings.OIDC_OP_DISCOVERY_URL = f"{PROVIDER}/.well-known/openid-configuration"
    monkeypatch.setattr(guarded_client, "send", answering(200, json.dumps(DOCUMENT).encode()))
    assert is_sound(provider_checks.identity_provider())
    # The demo provider of an installation that is not started.
    monkeypatch.setattr(guarded_client, "send", raising(guarded_client.OutboundError("x")))
    assert only(provider_checks.identity_provider())[0] is Status.WARNING


def test_an_empty_catalog(db: None) -> None:
    assert only(provider_checks.vendors()) == (Status.ERROR, "The catalog has no vendors. Run load_vendors.")
    load_vendor("http://127.0.0.1:9/mcp")
    assert is_sound(provider_checks.vendors())


# database


def test_missing_migrations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.readiness.database_states", lambda: ("ok", "failed"))
    assert only(database_checks.migrations()) == (
        Status.ERROR,
        "Migrations are missing in the database. Run migrate.",
    )


def test_a_database_that_takes_no_rows(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.readiness.database_states", lambda: ("failed", "failed"))
    assert only(database_checks.database())[0] is Status.ERROR


@needs_server
def test_too_few_connections(db: None, settings: LazySettings) -> None:
    settings.DEPLOYMENT_PROCESSES = 5_000
    found = database_checks.connections_enough()
    assert any("PostgreSQL gives" in each.message and each.status is Status.WARNING for each in found)


def test_a_pooler_that_is_not_declared() -> None:
    judge = database_checks.judged_pooler
    status, message = only(judge(is_there=True, is_declared=False, statement_timeout="15s"))
    assert (status, "DATABASE_POOLER" in message) == (Status.WARNING, True)
    assert "ALTER ROLE" in only(judge(is_there=True, is_declared=True, statement_timeout="0"))[1]
    assert only(judge(is_there=False, is_declared=True, statement_timeout="15s"))[0] is Status.WARNING
    assert is_sound(judge(is_there=False, is_declared=False, statement_timeout="15s"))


@needs_server
def test_no_pooler_is_seen_where_none_is(db: None) -> None:
    assert is_sound(database_checks.pooler())


@needs_server
def test_commits_that_do_not_wait_for_the_disk(db: None) -> None:
    # The suite's databases run so.
    status, message = only(database_checks.durability())
    assert (status, "synchronous_commit=off" in message) == (Status.ERROR, True)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = on")
    assert is_sound(database_checks.durability())


def test_a_standby_that_is_behind() -> None:
    judge = database_checks.judged_durability
    sound = {"commit": "on", "fsync": "on"}
    assert "one disk" in only(judge(**sound, has_names=False, together=0, apart=0))[1]
    assert "two disks" in only(judge(**sound, has_names=True, together=1, apart=0))[1]
    assert only(judge(**sound, has_names=False, together=0, apart=1))[0] is Status.WARNING
    assert only(judge(**sound, has_names=True, together=0, apart=0))[0] is Status.WARNING
    assert only(judge(commit="local", fsync="on", has_names=True, together=0, apart=1))[0] is Status.WARNING
    assert "fsync" in only(judge(commit="on", fsync="off", has_names=False, together=0, apart=0))[1]


def test_partitions_that_end_soon() -> None:
    judge = database_checks.judged_partitions
    assert is_sound(judge(NOW + timedelta(days=90), has_strays=False, now=NOW))
    assert only(judge(NOW + timedelta(days=20), has_strays=False, now=NOW))[0] is Status.WARNING
    assert only(judge(NOW + timedelta(days=1), has_strays=False, now=NOW))[0] is Status.ERROR
    assert only(judge(None, has_strays=False, now=NOW))[0] is Status.ERROR
    assert "default partition" in only(judge(NOW + timedelta(days=90), has_strays=True, now=NOW))[1]


@needs_server
def test_partitions_of_a_database(db: None) -> None:
    assert is_sound(database_checks.partitions_ahead())


@needs_server
def test_a_transaction_that_stays_open(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_checks, "LONG_TRANSACTION_S", 0)
    server = connection.settings_dict
    login = {name.lower(): server[name] for name in ("USER", "PASSWORD", "HOST", "PORT") if server[name]}
    with closing(psycopg.connect(dbname=server["NAME"], application_name="forgotten", **login)) as forgotten:
        forgotten.execute("SELECT 1")
        found = database_checks.long_transactions()
    assert any("forgotten" in each.message and each.status is Status.WARNING for each in found)


def test_a_disk_that_is_nearly_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_checks, "is_server", lambda: False)
    monkeypatch.setattr(database_checks, "FEW_FREE_BYTES", 2**60)
    assert only(database_checks.storage())[0] is Status.WARNING
    monkeypatch.setattr(database_checks, "LEAST_FREE_BYTES", 2**60)
    assert only(database_checks.storage())[0] is Status.ERROR


def test_the_rule_of_connections_lives_once() -> None:
    assert settings_checks.from_messages(postgresql_check.too_few(1, processes=1, each=1))[0].status is Status.WARNING


# Redis


@pytest.fixture(scope="module")
def redis_of_ours() -> Any:
    with redis_server() as server:
        yield server


@pytest.fixture
def named(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The deployment's Redis."""

    def name(url: str, *, is_cluster: bool = False) -> None:
        settings.REDIS_URL, settings.REDIS_CLUSTER = url, is_cluster
        monkeypatch.setattr(workers, "QUEUE_REDIS_URL", url)

    return name


def messages(found: Sequence[Finding], status: Status = Status.ERROR) -> str:
    return " ".join(each.message for each in found if each.status is status)


def test_redis_is_away_and_its_password_is_not_shown(named: Any) -> None:
    named("redis://:hidden@127.0.0.1:1/0")
    status, message = only(redis_checks.reachable())
    assert (status, "hidden" in message) == (Status.ERROR, False)


@needs_redis
def test_redis_that_drops_keys_and_writes_nothing(named: Any, redis_of_ours: RedisServer) -> None:
    named(redis_of_ours.url)
    assert is_sound(redis_checks.reachable())
    redis_of_ours.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    found = redis_checks.configured()
    assert "maxmemory-policy allkeys-lru" in messages(found)
    assert "no maxmemory" in messages(found, Status.WARNING)
    assert "writes nothing to its disk" in messages(found, Status.WARNING)
    redis_of_ours.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    redis_of_ours.ask("CONFIG", "SET", "maxmemory", "64mb")
    redis_of_ours.ask("CONFIG", "SET", "appendonly", "yes")
    assert is_sound(redis_checks.configured())


@needs_redis
def test_redis_that_is_a_replica(named: Any, redis_of_ours: RedisServer) -> None:
    named(redis_of_ours.url)
    redis_of_ours.ask("REPLICAOF", "127.0.0.1", "1")
    try:
        assert "is a replica" in messages(redis_checks.configured())
    finally:
        redis_of_ours.ask("REPLICAOF", "NO", "ONE")


@pytest.mark.skipif(not makes_clusters(), reason="redis-server 7 is not installed")
def test_redis_that_is_a_cluster(named: Any) -> None:
    with redis_server(is_cluster=True) as server:
        named(server.url)
        assert "Set REDIS_CLUSTER" in messages(redis_checks.configured())
        named(server.url, is_cluster=True)
        assert "cluster" not in messages(redis_checks.configured())


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("rediss://:x@redis.example:6379/0", Status.ERROR),
        ("rediss://:x@redis.example:6379/0?ssl_cert_reqs=none", Status.ERROR),
        ("rediss://:x@redis.example:6379/0?ssl_cert_reqs=required", Status.OK),
        ("redis://redis.example:6379/0", Status.WARNING),
        ("redis://:x@redis.example:6379/0", Status.OK),
        ("redis://127.0.0.1:6379/0", Status.OK),
    ],
)
def test_certificates_of_redis(named: Any, url: str, status: Status) -> None:
    named(url)
    assert only(redis_checks.tls())[0] is status


# clocks


@pytest.mark.parametrize(
    ("ahead_s", "status", "words"),
    [(0.2, Status.OK, "ahead of"), (-5.0, Status.WARNING, "behind"), (31.0, Status.ERROR, "ahead of")],
)
def test_clocks_that_differ(ahead_s: float, status: Status, words: str) -> None:
    seconds = clock_checks.difference_s(lambda: 1_000.0, host=lambda: 1_000.0 + ahead_s)
    found, message = only(clock_checks.judged("PostgreSQL", seconds))
    assert (found, words in message) == (status, True)


@needs_server
def test_the_servers_clock_is_read(db: None) -> None:
    assert "PostgreSQL" in only(clock_checks.database_clock())[1]


@needs_redis
def test_the_clock_of_redis_is_read(named: Any, redis_of_ours: RedisServer) -> None:
    named(redis_of_ours.url)
    assert is_sound(clock_checks.redis_clock())


# keys


def test_a_key_that_rows_need_is_missing(cast: Cast) -> None:
    load_vendor("http://127.0.0.1:9/mcp")
    connect(cast.org, cast.user("owner"))
    assert is_sound(key_checks.sealing_keys())
    OrganizationDataKey.objects.update(key_id="lost")
    status, message = only(key_checks.sealing_keys())
    assert (status, "lacks lost" in message, "1 of credentials.OrganizationDataKey" in message) == (
        Status.ERROR,
        True,
        True,
    )


def test_every_table_with_a_sealed_column_is_asked() -> None:
    assert {label for label, _ in key_fields()} == {
        "audit.LogDestination",
        "credentials.OrganizationDataKey",
        "credentials.VendorRevocation",
        "oauth_ext.SigningKey",
        "orgs.AlertSettings",
        "orgs.Identity",
        "orgs.Invitation",
        "web.IdempotencyRecord",
    }


def test_remembered_answers_of_a_lost_key_are_no_error() -> None:
    found = key_checks.judged({"lost": {"web.IdempotencyRecord": 3}}, {"first"}, current="first")
    assert only(found)[0] is Status.WARNING


def test_signing_keys_that_do_not_open(db: None) -> None:
    assert is_sound(key_checks.signing_keys())
    SigningKey.objects.create(
        kid="old", key_id="lost", sealed_private_key=b"x", public_jwk={}, signs_from=clock.now() - timedelta(1)
    )
    assert only(key_checks.signing_keys())[0] is Status.ERROR


def test_a_signing_key_that_is_old() -> None:
    assert key_checks.judged_age("k", 12).status is Status.OK
    assert key_checks.judged_age("k", 400).status is Status.WARNING


# work beside the calls


def test_a_schedule_that_is_silent(cast: Cast, settings: LazySettings) -> None:
    settings.EMBEDDED = False
    assert only(work_checks.worker())[0] is Status.OK
    cursor = StreamCursor.objects.create(name="seals", log="requests", reached_at=clock.now())
    assert only(work_checks.worker()) == (Status.OK, "The schedule runs.")
    cursor.reached_at = clock.now() - timedelta(minutes=9)
    cursor.save()
    status, message = only(work_checks.worker())
    assert (status, "last ran 9 minutes ago" in message) == (Status.ERROR, True)
    settings.EMBEDDED = True
    assert only(work_checks.worker())[0] is Status.WARNING


def test_a_schedule_that_never_ran() -> None:
    found = work_checks.judged_worker(NOW - timedelta(hours=1), has_run=False, now=NOW, is_embedded=False)
    assert (found.status, "has never run" in found.message) == (Status.ERROR, True)
    assert work_checks.judged_worker(None, has_run=False, now=NOW, is_embedded=False).status is Status.OK


def test_messages_that_pile_up(settings: LazySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.VAR = tmp_path
    monkeypatch.setattr(workers, "QUEUE_REDIS_URL", "")
    (tmp_path / "queue").mkdir()
    (tmp_path / "queue" / "one").touch()
    assert is_sound(work_checks.queues())
    monkeypatch.setattr(work_checks, "LONG_QUEUE", 0)
    assert only(work_checks.queues())[0] is Status.WARNING


@needs_redis
def test_messages_that_pile_up_in_redis(
    named: Any, redis_of_ours: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    named(redis_of_ours.url)
    monkeypatch.setattr(workers, "CELERY_BROKER_TRANSPORT_OPTIONS", {"global_keyprefix": "gateway:queue:"})
    assert is_sound(work_checks.queues())
    monkeypatch.setattr(work_checks, "LONG_QUEUE", 1)
    redis_of_ours.ask("RPUSH", "gateway:queue:gateway", "a", "b")
    assert only(work_checks.queues())[0] is Status.WARNING


def test_revocations_that_redis_has_not_taken(db: None) -> None:
    assert is_sound(work_checks.outbox())
    PendingBump.objects.create(name="subject:x", created_at=clock.now() - timedelta(minutes=2))
    assert only(work_checks.outbox())[0] is Status.ERROR


def test_a_destination_that_fails(cast: Cast) -> None:
    assert is_sound(work_checks.log_shipping())
    LogDestination.objects.create(
        org_id=cast.org.pk, platform="webhook", config_sealed=b"", status=DestinationStatus.FAILING
    )
    assert only(work_checks.log_shipping())[0] is Status.WARNING


def test_a_journal_that_cannot_be_written(settings: LazySettings, tmp_path: Path) -> None:
    settings.REVOCATION_JOURNAL = tmp_path / "journal"
    assert is_sound(work_checks.revocation_journal())
    settings.REVOCATION_JOURNAL = tmp_path / "missing" / "journal"
    assert only(work_checks.revocation_journal())[0] is Status.ERROR
    settings.REVOCATION_JOURNAL = None
    assert only(work_checks.revocation_journal())[0] is Status.WARNING


def test_a_restore_that_is_not_finished(settings: LazySettings, tmp_path: Path) -> None:
    settings.VAR = tmp_path
    assert work_checks.restored() == []
    (tmp_path / MARK).write_text('{"restored_to": "2026-05-01T00:00:00.000Z"}')
    status, message = only(work_checks.restored())
    assert (status, "after_restore --at 2026-05-01T00:00:00.000Z" in message) == (Status.ERROR, True)


# all of them


def broken() -> Sequence[Finding]:
    raise RuntimeError("postgres://u:hidden@db/x")


def test_a_broken_check_stops_no_other() -> None:
    found = list(runner.run([Check("one", broken), Check("two", lambda: [ok("Fine.")])]))
    assert [(each.check, each.status) for each in found] == [("one", Status.ERROR), ("two", Status.OK)]
    assert "hidden" not in found[0].message


def test_a_check_that_hangs_is_given_up() -> None:
    held = threading.Event()

    def hangs() -> Sequence[Finding]:
        held.wait(60)
        return []

    try:
        [one, two] = runner.run([Check("one", hangs), Check("two", lambda: [warning("So.")])], deadline_s=0.05)
    finally:
        held.set()
    assert (one.status, "no answer" in one.message, two.check) == (Status.ERROR, True, "two")


def test_checks_of_a_database_that_is_away_are_left_out() -> None:
    checks = [
        Check("database", lambda: [error("Away.")]),
        Check("migrations", lambda: [ok("Fine.")], needs="database"),
        Check("keys", lambda: [ok("Fine.")], needs="migrations"),
        Check("proxy", lambda: [ok("Fine.")]),
    ]
    assert [each.check for each in runner.run(checks)] == ["database", "proxy"]


def test_every_check_has_a_row_in_its_document() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \|", (ROOT / "docs" / "operations" / "doctor.md").read_text(), flags=re.M)
    assert rows == list(dict.fromkeys(check.name for check in CHECKS))


def test_a_check_needs_an_earlier_one() -> None:
    names = [check.name for check in CHECKS]
    for number, check in enumerate(CHECKS):
        assert not check.needs or check.needs in names[:number], check.name


@pytest.mark.django_db(transaction=True)
def test_the_command_says_it_in_lines_and_as_json(monkeypatch: pytest.MonkeyPatch, committed_cast: Cast) -> None:
    load_vendor("http://127.0.0.1:9/mcp")
    monkeypatch.setattr(
        guarded_client, "send", answering(200, json.dumps({"version": settings_checks.own_version()}).encode())
    )
    out = StringIO()
    with pytest.raises(CommandError) as refused:
        call_command("doctor", "--json", stdout=out)
    found = json.loads(out.getvalue())
    assert refused.value.returncode == 1
    assert {frozenset(each) for each in found} == {frozenset({"check", "status", "message"})}
    # The suite's provider gives no document.
    by_check = {each["check"]: each["status"] for each in found}
    assert (by_check["identity_provider"], by_check["database"], by_check["migrations"]) == ("error", "ok", "ok")
    lines = StringIO()
    with pytest.raises(CommandError):
        call_command("doctor", stdout=lines)
    assert len(lines.getvalue().splitlines()) == len(found)


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"redis_version": "7.2.4"}, "Redis 7.2.4"),
        ({"redis_version": "7.2.4", "valkey_version": "8.0.1"}, "Valkey 8.0.1"),
        ({}, "Redis of an unknown version"),
    ],
)
def test_valkey_is_called_by_its_name(facts: dict[str, str], name: str) -> None:
    assert redis_checks.product(facts) == name


def test_messages_that_wait_are_named(cast: Cast) -> None:
    assert is_sound(work_checks.messages())
    long_ago = clock.now() - timedelta(hours=1)
    OutgoingMail.objects.create(kind="invitation", address="ana@example.com", created_at=long_ago)
    AlertMessage.objects.create(
        organization=cast.org, moment="begin", began_at=long_ago, created_at=long_ago, webhook="waiting"
    )
    found = work_checks.messages()
    assert [each.status for each in found] == [Status.WARNING, Status.WARNING]
    assert [each.message.split(" ", 2)[:2] for each in found] == [["1", "emails"], ["1", "alerts"]]

"""The logs at size: how fast their API, their dashboards and their partitions are with millions of rows.

    BENCH_DATABASE_URL=postgres://user@127.0.0.1:5432/postgres python -m bench.log_at_size [--rows 10000000]

Rows of --orgs organizations over 360 days are seeded by the server, a few organizations with most of them. Requests go
through the product's views in this process, each route with each filter and with pairs, in the organizations with the
most rows, with some 300,000, and with the middle number. Sizes of rows and indexes, the cost of an insert, and the drop
of a partition follow. The run makes a database of its own and drops it; with --keep NAME the database and its rows stay
for the next run, which measures at once.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import resource
import statistics
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

from bench.databases import address_of, drop_database, has_database, make_database
from bench.log_seed import ADMIN_TABLE, REQUEST_TABLE, seed_logs, share_of

ROUNDS = 20  # of each request
SLICES = 20  # of inserts, in either database in turn
WARM_SLICES = 20  # before them: a log in use has its newest pages in memory
USUAL_ROWS = 330_000  # of an organization; the largest one of ten million rows has as many
INSERT_ROWS = 3_200  # of a slice
EXPORTED_ROWS = 1_000_000
VERIFIED_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class Line:
    """One measured request; times in milliseconds."""

    name: str
    p50: float
    p95: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--admin-rows", type=int, default=0, help="a tenth of --rows without it")
    parser.add_argument("--orgs", type=int, default=1_000)
    parser.add_argument("--small-rows", type=int, default=100_000, help="of the other database of the inserts")
    parser.add_argument("--no-usage", action="store_true", help="leave the roll-ups and the dashboards out")
    parser.add_argument("--keep", default="", metavar="NAME", help="databases NAME and NAME_small, which stay")
    parser.add_argument("--prepare", action="store_true", help="leave the measuring to a later run")
    options = parser.parse_args()
    server = os.environ.get("BENCH_DATABASE_URL", "")
    if not server.startswith("postgres"):
        parser.error("BENCH_DATABASE_URL must name a PostgreSQL server.")
    with _databases(server, options) as (url, small_url):
        if not options.prepare:
            _measure(options, url, small_url)
        elif not options.no_usage:
            _roll_up(options.rows)
    return 0


@contextmanager
def _databases(server: str, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """(the address of the filled database, that of a small one)."""
    with ExitStack() as stack:
        name = options.keep or f"bench_{os.getpid()}"
        url, small_url = (address_of(server, each) for each in (name, f"{name}_small"))
        is_new = not has_database(server, name)
        if is_new:
            make_database(server, name)
        if not options.keep:
            stack.callback(drop_database, server, name)
        _set_up(url)
        if is_new:
            seed_logs(url, options.small_rows, options.small_rows // 10, options.orgs)
            _copy(server, name)
            if not options.keep:
                stack.callback(drop_database, server, f"{name}_small")
            seeded_at_s = time.monotonic()
            seed_logs(url, options.rows, options.admin_rows or options.rows // 10, options.orgs)
            _print(f"{options.rows:,} rows seeded in {time.monotonic() - seeded_at_s:.0f} s")
        yield url, small_url


def _copy(server: str, name: str) -> None:
    """The small database is a copy; the rows of the original go."""
    from django.db import connection

    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]
    make_database(server, f"{name}_small", template=name)
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {REQUEST_TABLE}, {ADMIN_TABLE}")


def _measure(options: argparse.Namespace, url: str, small_url: str) -> None:
    from audit.models import RequestAuditEntry

    now = RequestAuditEntry.objects.latest("id").timestamp
    _print_sizes(options.rows)
    if not options.no_usage:
        _roll_up(options.rows)
    for name, number in _organizations(options.rows, options.orgs).items():
        _print_requests(name, _organization(number), now)
        if not options.no_usage:
            _print_usage(name, _organization(number))
    _print_export(_organization(1))
    _print_verification()
    _print_inserts(options.rows, url, options.small_rows, small_url)
    _print_drop()


def _organizations(rows: int, orgs: int) -> dict[str, int]:
    """The organizations that are measured, by their numbers.

    The largest one grows with the log; the one of USUAL_ROWS shows what the rows of all others cost.
    """
    usual = next(n for n in range(1, orgs + 1) if rows * share_of(n, orgs) <= USUAL_ROWS)
    return {"largest": 1, "usual": usual, "middle": orgs // 2}


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _set_up(url: str) -> None:
    os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings", "REQUESTS_PER_MINUTE": "10000000"}
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def _print_sizes(rows: int) -> None:
    from django.db import connection

    # The parts of an index under the name of the whole table's.
    sql = (
        "SELECT CASE part.relkind WHEN 'r' THEN 'rows' ELSE coalesce(whole.relname, 'not attached') END AS name,"
        " sum(pg_relation_size(part.oid)) FROM pg_class part LEFT JOIN pg_inherits ON inhrelid = part.oid"
        f" LEFT JOIN pg_class whole ON whole.oid = inhparent WHERE part.relkind IN ('r', 'i')"
        f" AND (part.relname LIKE '{REQUEST_TABLE}_20%' OR whole.relname LIKE 'request_log_%')"
        " GROUP BY 1 ORDER BY 2 DESC"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql)
        for name, size in cursor.fetchall():
            _print(f"  {name:40} {size / 2**20:10,.0f} MiB {size / rows:8.1f} bytes a row")


def _organization(number: int) -> uuid.UUID:
    """A real organization with the seeded rows of this number, and an admin who signs in as admin<number>."""
    from orgs.models import Membership, Organization, User

    org_id = uuid.UUID(int=number)
    if not Organization.objects.filter(id=org_id).exists():
        organization = Organization.objects.create(id=org_id, name=f"Organization {number}")
        user = User.objects.create_user(email=f"admin{number}@bench.example", display_name="Admin")
        Membership.objects.create(organization=organization, user=user, role="admin")
    return org_id


def _requests(org_id: uuid.UUID, now: datetime) -> Iterator[tuple[str, str, dict[str, str]]]:
    """(name, path, query) of each filter, of pairs, and of the deepest offset."""
    month = {"start": f"{now - timedelta(days=120):%Y-%m-%d}", "end": f"{now - timedelta(days=90):%Y-%m-%d}"}
    number = org_id.int
    filters = {
        "user": {"user_id": f"user-{number}-3"},
        "rare user": {"user_id": f"user-{number}-39"},
        "vendor": {"vendor": "vendor-3"},
        "tool": {"tool": "tool_7"},
        "source": {"source": "cli"},
        "status": {"status": "denied"},
        "success": {"status": "success"},
        "request": {"request_id": "none"},
        "month": month,
        "no such user": {"user_id": "none"},
        "no such tool": {"tool": "none"},
    }
    yield "all", "/api/audit", {}
    yield "deepest offset", "/api/audit", {"offset": "100000"}
    for name in ("source", "vendor", "tool", "user"):
        yield f"deepest offset + {name}", "/api/audit", {**filters[name], "offset": "100000"}
    for name, query in filters.items():
        yield name, "/api/audit", query
    for (one, first), (two, second) in itertools.combinations(filters.items(), 2):
        if not set(first) & set(second):
            yield f"{one} + {two}", "/api/audit", {**first, **second}
    admin = {
        "event": {"event_type": "event.type_3"},
        "actor": {"actor_id": f"user-{number}-3"},
        "target": {"target_id": "target-9"},
        "month": month,
        "no such event": {"event_type": "none"},
    }
    yield "admin: all", "/api/audit/admin", {}
    for name, query in admin.items():
        yield f"admin: {name}", "/api/audit/admin", query
    for (one, first), (two, second) in itertools.combinations(admin.items(), 2):
        if not set(first) & set(second):
            yield f"admin: {one} + {two}", "/api/audit/admin", {**first, **second}


def _client(org_id: uuid.UUID) -> Any:
    from django.test import Client

    from orgs.models import User

    client = Client()
    client.force_login(User.objects.get(email=f"admin{org_id.int}@bench.example"))
    return client


def _print_requests(name: str, org_id: uuid.UUID, now: datetime) -> None:
    client = _client(org_id)
    total = client.get("/api/audit", {"org_id": org_id}).json()["total"]
    _print(f"{name} organization, {total:,} rows or more: p50 and p95 in ms")
    lines = []
    for title, path, query in _requests(org_id, now):
        asked = f"{path}?{urlencode({'org_id': str(org_id), **query})}"
        lines.append(Line(title, *_timed(lambda asked=asked: client.get(asked))))  # type: ignore[misc]
    for line in sorted(lines, key=lambda each: -each.p95)[:15]:
        _print(f"  {line.name:40} {line.p50:8.1f} {line.p95:8.1f}")
    _print(f"  of {len(lines)}, p95 of all: {sorted(line.p95 for line in lines)[int(len(lines) * 0.95)]:.1f}")


def _timed(ask: Callable[[], Any]) -> tuple[float, float]:
    took = []
    for _ in range(ROUNDS):
        began_s = time.perf_counter()
        answer = ask()
        took.append((time.perf_counter() - began_s) * 1000)
        if answer.status_code != 200:
            raise SystemExit(f"{answer.status_code}: {answer.content[:300]!r}")
    took.sort()
    return took[ROUNDS // 2], took[ROUNDS * 95 // 100 - 1]


def _roll_up(rows: int) -> None:
    from audit.usage.rollup import roll_up

    began_s, done = time.monotonic(), 0
    while counted := roll_up(20_000):
        done += counted
    took_s = time.monotonic() - began_s
    _print(f"{done:,} of {rows:,} rows rolled up in {took_s:.0f} s, {done / max(took_s, 0.001):,.0f} a second")


def _print_usage(name: str, org_id: uuid.UUID) -> None:
    client = _client(org_id)
    _print(f"dashboards of the {name} organization")
    for path in ("usage", "vendors", "savings"):
        for period in ("30d", "1y"):
            asked = f"/api/dashboard/{path}?range={period}&org_id={org_id}"
            p50, p95 = _timed(lambda asked=asked: client.get(asked))  # type: ignore[misc]
            _print(f"  {path} {period:4} p50 {p50:.1f} ms, p95 {p95:.1f} ms")


def _print_export(org_id: uuid.UUID) -> None:
    """Of one organization's whole log, read as a client would that takes each part at once."""
    client = _client(org_id)
    began_s, before_kib = time.perf_counter(), _memory_kib()
    answer = client.get("/api/audit", {"org_id": org_id, "format": "csv", "limit": EXPORTED_ROWS})
    first_s, size, peak_kib = asyncio.run(_read(answer, began_s))
    took_s = time.perf_counter() - began_s
    _print(
        f"CSV of {int(answer['X-Total-Count']):,} rows: first byte after {first_s * 1000:.0f} ms,"
        f" {size / 2**20:.0f} MiB in {took_s:.0f} s, memory {(peak_kib - before_kib) / 1024:+.1f} MiB at most"
    )


async def _read(answer: Any, began_s: float) -> tuple[float, int, int]:
    """(seconds until the first part, bytes, the most memory in KiB)."""
    first_s, size, peak_kib = 0.0, 0, 0
    async for part in answer.streaming_content:
        first_s = first_s or time.perf_counter() - began_s
        size += len(part)
        peak_kib = max(peak_kib, _memory_kib())
    return first_s, size, peak_kib


def _memory_kib() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024


def _print_verification() -> None:
    from audit.seals import seal_next
    from audit.stream import Log
    from audit.verification import verify

    began_s, sealed = time.monotonic(), 0
    while sealed < VERIFIED_ROWS and (taken := seal_next(Log.REQUESTS)):
        sealed += taken
    sealed_s = time.monotonic() - began_s
    began_s = time.monotonic()
    result = verify(Log.REQUESTS)
    took_s = time.monotonic() - began_s
    _print(
        f"{sealed:,} rows sealed in {sealed_s:.0f} s; {result.rows:,} verified in {took_s:.0f} s,"
        f" {len(result.findings)} findings"
    )


def _print_inserts(rows: int, url: str, small_rows: int, small_url: str) -> None:
    """The statement of the call path, in slices of either database in turn."""
    ratios, costs = [], []
    for number in range(-WARM_SLICES, SLICES):
        order = (url, small_url) if number % 2 else (small_url, url)
        cost = {each: _insert_us(each) for each in order}
        if number < 0:
            continue
        ratios.append(cost[url] / cost[small_url])
        costs.append(cost[url])
    _print(
        f"insert of a batch of 16: {statistics.median(costs):.0f} us of the server a row at {rows:,} rows,"
        f" {statistics.median(ratios):.3f} times that at {small_rows:,} (median of {SLICES} pairs)"
    )


def _insert_us(url: str) -> float:
    """16 rows at once, in the process that writes them."""
    from django.db import connection

    from audit.audit_connection import open_audit_connection

    chance = random.Random(1)
    audit = open_audit_connection({**connection.settings_dict, "NAME": urlsplit(url).path[1:]})
    began_s = time.perf_counter()
    for _ in range(INSERT_ROWS // 16):
        numbers = [chance.randint(1, 1_000) for _ in range(16)]
        audit.commit(
            [
                _call(uuid.UUID(int=n), f"user-{n}-{chance.randint(0, 40)}", f"vendor-{chance.randint(0, 11)}")
                for n in numbers
            ]
        )
    took_s = time.perf_counter() - began_s
    audit.close()
    return took_s / INSERT_ROWS * 1e6


def _call(org_id: uuid.UUID, user_id: str, vendor: str) -> Any:
    from audit.call_record import CallRecord

    return CallRecord(
        org_id=org_id,
        user_id=user_id,
        user_label="Ana",
        vendor=vendor,
        tool="tool_1",
        source="mcp",
        status="success",
        request_id=str(uuid.uuid4()),
    )


def _print_drop() -> None:
    """A partition goes while calls are recorded."""
    from audit import partitions
    from audit.audit_connection import open_audit_connection

    is_over, longest = threading.Event(), [0.0]

    def write() -> None:
        connection = open_audit_connection()
        while not is_over.is_set():
            began_s = time.perf_counter()
            connection.commit([_call(uuid.UUID(int=1), "user-1-1", "vendor-1")])
            longest[0] = max(longest[0], time.perf_counter() - began_s)
        connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    time.sleep(0.5)
    oldest = partitions.partitions()[0]
    began_s = time.perf_counter()
    partitions.drop_before(oldest.end)
    took_s = time.perf_counter() - began_s
    time.sleep(0.5)
    is_over.set()
    thread.join()
    _print(
        f"{oldest.name} dropped in {took_s * 1000:.0f} ms; the longest commit meanwhile took {longest[0] * 1000:.0f} ms"
    )


if __name__ == "__main__":
    sys.exit(main())

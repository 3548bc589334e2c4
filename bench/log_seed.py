"""Millions of rows in both logs of a database, over a year of partitions, a few organizations with most of them.

The indexes are made when the rows are there: that takes a tenth of the time, and gives them the size of a fresh build.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import psycopg

DAYS = 360
CONNECTIONS = 2
REQUEST_TABLE, ADMIN_TABLE = "audit_requestauditentry", "audit_adminauditentry"
_SEEDED_AT_ONCE = 250_000
_BUILD_MEMORY = "512MB"
# The share of organization n falls like a power: with 1,000 organizations the first has about 3 % of all rows.
_REQUEST_SEED = """
INSERT INTO audit_requestauditentry (id, timestamp, org_id, user_id, user_label, vendor, tool, source, status,
  error_code, duration_ms, vendor_ms, credential_scope, credential_name, cached, client_id, client_name, ip_address,
  request_id, request_bytes, response_bytes, position)
SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(tail, 2, 3) || 'a'
  || substr(tail, 6, 15))::uuid, at, lpad(to_hex(org), 32, '0')::uuid, 'user-' || org || '-' || who,
  'Person ' || who || ' of organization ' || org, 'vendor-' || tool % 12, 'tool_' || tool, source,
  CASE WHEN kind < 0.94 THEN 'success' WHEN kind < 0.98 THEN 'error' ELSE 'denied' END,
  CASE WHEN kind < 0.94 THEN '' WHEN kind < 0.98 THEN 'vendor_timeout' ELSE 'tool_not_allowed' END,
  took, took - 3, 'org', '', false, 'client-' || who, 'Desktop client', '203.0.113.7', tail, 200, 2000, {position} + n
FROM (SELECT n, date_trunc('milliseconds', {start}::timestamptz + {span}::interval * (n::float / {rows})) AS at,
  floor({orgs} * power(random(), 2))::int + 1 AS org, floor(40 * power(random(), 2))::int AS who,
  floor(60 * random())::int AS tool, CASE WHEN random() < 0.7 THEN 'mcp' ELSE 'cli' END AS source, random() AS kind,
  (5 + 400 * power(random(), 3))::int AS took, md5(n::text || {salt}) AS tail
  FROM generate_series({first}::bigint, {last}::bigint) AS n) AS seeded
"""
_ADMIN_SEED = """
INSERT INTO audit_adminauditentry (id, timestamp, org_id, event_type, actor_id, actor_label, target_id, target_label,
  metadata, ip_address, request_id, position)
SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(tail, 2, 3) || 'a'
  || substr(tail, 6, 15))::uuid, at, lpad(to_hex(org), 32, '0')::uuid, 'event.type_' || kind,
  'user-' || org || '-' || who, 'Person', 'target-' || target, 'Target', '{{"name": "Ops"}}', '203.0.113.7', tail,
  {position} + n
FROM (SELECT n, date_trunc('milliseconds', {start}::timestamptz + {span}::interval * (n::float / {rows})) AS at,
  floor({orgs} * power(random(), 2))::int + 1 AS org, floor(20 * random())::int AS who,
  floor(40 * random())::int AS kind, floor(500 * random())::int AS target, md5(n::text || {salt}) AS tail
  FROM generate_series({first}::bigint, {last}::bigint) AS n) AS seeded
"""


def share_of(number: int, orgs: int) -> float:
    """Returns the share of all rows that organization `number` gets: the square root's step."""
    return float((number**0.5 - (number - 1) ** 0.5) / orgs**0.5)


def seed_logs(url: str, rows: int, admin_rows: int, orgs: int) -> datetime:
    """Fills the logs of a database without any rows and returns the time of the newest one. The schema is there."""
    from audit import partitions
    from gateway.lib import clock

    now = clock.now().replace(microsecond=0)
    start = now - timedelta(days=DAYS)
    partitions.drop_before(now + timedelta(days=400))
    # Months have partitions, as if the service had run all the time.
    partitions.make_ahead(start, months=DAYS // 30 + 3)
    statements = []
    for template, total in ((_REQUEST_SEED, rows), (_ADMIN_SEED, admin_rows)):
        values = {"rows": total, "orgs": orgs, "position": 10, "salt": "'s'", "start": f"'{start}'"}
        values["span"] = f"'{DAYS} days'"
        for first in range(0, total, _SEEDED_AT_ONCE):
            last = min(first + _SEEDED_AT_ONCE, total) - 1
            statements.append(template.format(first=first, last=last, **values))
    with _without_indexes(url), ThreadPoolExecutor(CONNECTIONS) as threads:
        list(threads.map(lambda statement: _execute(url, statement), statements))
    # The seeded positions lie below those of an era that begins here.
    _execute(url, "UPDATE audit_streamera SET start = 100000000000")
    for table in (REQUEST_TABLE, ADMIN_TABLE):
        _execute(url, f"VACUUM ANALYZE {table}")
    return now


@contextmanager
def _without_indexes(url: str) -> Iterator[None]:
    """The primary keys stay."""
    found = _execute(
        url,
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = ANY(%s) AND indexname NOT LIKE '%%pkey'",
        [[REQUEST_TABLE, ADMIN_TABLE]],
    )
    for name, _ in found:
        _execute(url, f'DROP INDEX "{name}"')
    yield
    for _, definition in found:
        _execute(url, definition.replace(" ON ONLY ", " ON "))


def _execute(url: str, statement: str, values: list[Any] | None = None) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET synchronous_commit = off; SET maintenance_work_mem = '{_BUILD_MEMORY}'")
        cursor = connection.execute(statement, values)
        return cursor.fetchall() if cursor.description else []

"""Programs of `tests.faults.shipping_killed`, in the service's environment: `prepare URL ...`, `write FILE RATE SEED`.

`prepare` gives each organization a destination. `write` commits calls of both until it is ended.
"""

from __future__ import annotations

import itertools
import random
import sys
import time
import uuid
from collections.abc import Sequence

import django

ORGS = (uuid.UUID("11111111-1111-4111-8111-111111111111"), uuid.UUID("22222222-2222-4222-8222-222222222222"))
LARGEST_COMMIT = 6
PAUSE_S = 0.05  # between two attempts to reach a database that is down


def prepare(urls: Sequence[str]) -> None:
    from django.db import transaction

    from audit.actor import system
    from audit.shipping import destinations

    for org_id, url in zip(ORGS, urls, strict=True):
        with transaction.atomic():
            destinations.create(
                org_id=org_id,
                actor=system("faults"),
                label="Receiver",
                platform="webhook",
                endpoint_url=url,
                config={"secret": "a secret of the test's own"},
            )


def write(file_name: str, rate: float, seed: int) -> None:
    """A line of the file is a call whose commit was confirmed."""
    from msgspec.structs import replace

    from audit.call_record import CallRecord

    chance = random.Random(seed)
    log = _Patient()
    next_s = time.monotonic()
    with open(file_name, "a", encoding="ascii", buffering=1) as noted:
        for number in itertools.count():
            records = [
                CallRecord(
                    org_id=chance.choice(ORGS),
                    user_id=f"user-{chance.randrange(50)}",
                    user_label="Ana",
                    vendor="acme",
                    tool="acme_list",
                    source="mcp",
                    status="success",
                    request_id=f"{seed}-{number}-{place}",
                )
                for place in range(chance.randint(1, LARGEST_COMMIT))
            ]
            if chance.random() < 0.3:  # as calls that change something: the intent first
                log.commit([replace(record, status="unknown") for record in records])
            log.commit(records)
            now = time.time()
            noted.write("".join(f"{record.id} {record.org_id} {now:.3f}\n" for record in records))
            # Calls that an outage has kept back are not made up for.
            next_s = max(next_s + len(records) / rate, time.monotonic() - 1.0)
            time.sleep(max(0.0, next_s - time.monotonic()))


class _Patient:
    """Commits the same records again, over a new connection, until that is confirmed."""

    def __init__(self) -> None:
        from audit.audit_connection import AuditConnection

        self._connection: AuditConnection | None = None

    def commit(self, records: Sequence[object]) -> None:
        from audit.audit_connection import open_audit_connection
        from audit.statement import RecordRefused

        while True:
            try:
                if self._connection is None:
                    self._connection = open_audit_connection()
                self._connection.commit(records)  # type: ignore[arg-type]
            except RecordRefused:
                raise
            except Exception as fault:
                # "Any exception means a broken connection" is the connection's own rule.
                sys.stderr.write(f"{type(fault).__name__}\n")
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None
                time.sleep(PAUSE_S)
            else:
                return


if __name__ == "__main__":
    django.setup()
    match sys.argv[1:]:
        case ["prepare", *urls]:
            prepare(urls)
        case ["write", file_name, rate, seed]:
            write(file_name, float(rate), int(seed))
        case _:
            sys.exit(__doc__)

"""Records as the receivers of `tests.faults.shipping_killed` got them, compared with the log."""

from __future__ import annotations

import hashlib
import itertools
import json
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.shipping_stage import TABLES, Stage
from tests.faults.shipping_writer import ORGS

Place = tuple[int, uuid.UUID]


@dataclass
class Arrivals:
    """The first arrival of each record, in order, with its time and a digest of its body."""

    first: dict[uuid.UUID, tuple[float, bytes]] = field(default_factory=dict)
    batches: int = 0
    repeated: int = 0
    differing: int = 0
    foreign: int = 0

    def read(self, file: Path, org_id: uuid.UUID) -> None:
        with file.open("rb") as lines:
            for line in lines:
                batch = json.loads(line)
                self.batches += 1
                for event in batch["body"]["events"]:
                    self._add(event, batch["at"], org_id)

    def _add(self, event: dict[str, object], at: float, org_id: uuid.UUID) -> None:
        row_id = uuid.UUID(str(event["id"]))
        digest = hashlib.blake2b(json.dumps(event).encode(), digest_size=8).digest()
        self.foreign += event["data"]["orgId"] != str(org_id)  # type: ignore[index]
        if (known := self.first.get(row_id)) is None:
            self.first[row_id] = at, digest
        else:
            self.repeated += 1
            self.differing += known[1] != digest


@dataclass
class Figures:
    kills: Counter[str] = field(default_factory=Counter)
    asked: dict[str, int] = field(default_factory=dict)  # kills by kind that were to be
    seconds: float = 0.0
    ended_by_themselves: int = 0
    claims_ended: int = 0
    confirmed: int = 0
    rows: int = 0
    arrived: int = 0
    batches: int = 0
    repeated: int = 0
    longest_wait_s: float = 0.0
    left: int = 0
    lost: int = 0
    missing_rows: int = 0
    invented: int = 0
    foreign: int = 0
    differing: int = 0
    out_of_order: int = 0
    set_aside: int = 0

    def checks(self) -> dict[str, bool]:
        return {
            "every kind was killed as often as asked": self.kills == Counter(self.asked),
            "calls were confirmed": self.confirmed > 0,
            f"nothing waits any more ({self.left})": self.left == 0,
            f"every confirmed record arrived ({self.lost} lost)": self.lost == 0,
            f"every row of the log arrived ({self.missing_rows} missing)": self.missing_rows == 0,
            f"nothing arrived that is not in the log ({self.invented})": self.invented == 0,
            f"nothing arrived of the other organization ({self.foreign})": self.foreign == 0,
            f"a repeated record has the same body ({self.differing} differ)": self.differing == 0,
            f"first arrivals are in the log's order ({self.out_of_order} are not)": self.out_of_order == 0,
            f"nothing was refused or skipped ({self.set_aside})": self.set_aside == 0,
        }

    @property
    def holds(self) -> bool:
        return all(self.checks().values())

    def __str__(self) -> str:
        kills = ", ".join(f"{kind} {number}" for kind, number in sorted(self.kills.items()))
        held = f"records confirmed {self.confirmed:,}, in the log {self.rows:,}, arrived {self.arrived:,}"
        ended = f"ended by themselves {self.ended_by_themselves}, claims ended early {self.claims_ended}"
        return "\n".join(
            [
                f"{self.seconds:.0f} s; killed: {kills}",
                f"{held} in {self.batches:,} batches, once more {self.repeated:,}",
                f"longest wait of a record {self.longest_wait_s:.1f} s; processes {ended}",
                *(f"{'ok  ' if is_kept else 'FAIL'} {bound}" for bound, is_kept in self.checks().items()),
            ]
        )


def compare(on: Stage, figures: Figures) -> None:
    confirmed = _confirmed(on)
    figures.confirmed = sum(len(of_org) for of_org in confirmed.values())
    for place, org_id in enumerate(ORGS):
        arrivals = Arrivals()
        arrivals.read(on.receiver_folder(place) / "batches", org_id)
        _add(figures, arrivals, _orders(on, org_id), confirmed[org_id])
    figures.left = on.waiting()
    figures.set_aside = int(on.select("SELECT sum(refused + skipped) FROM audit_logdestination")[0][0])


def _add(
    figures: Figures, arrivals: Arrivals, orders: list[dict[uuid.UUID, Place]], confirmed: dict[uuid.UUID, float]
) -> None:
    first = arrivals.first
    rows = {row_id for order in orders for row_id in order}
    figures.rows += len(rows)
    figures.arrived += len(first)
    figures.batches += arrivals.batches
    figures.repeated += arrivals.repeated
    figures.differing += arrivals.differing
    figures.foreign += arrivals.foreign
    figures.lost += len(confirmed.keys() - first.keys())
    figures.missing_rows += len(rows - first.keys())
    figures.invented += len(first.keys() - rows)
    figures.out_of_order += sum(_out_of_order(first, order) for order in orders)
    waits = (first[row_id][0] - at for row_id, at in confirmed.items() if row_id in first)
    figures.longest_wait_s = max(figures.longest_wait_s, max(waits, default=0.0))


def _confirmed(on: Stage) -> dict[uuid.UUID, dict[uuid.UUID, float]]:
    """When the commit of each call was confirmed, by organization."""
    found: dict[uuid.UUID, dict[uuid.UUID, float]] = {org_id: {} for org_id in ORGS}
    for file in on.noted_files():
        # The last line may be a half: its writer was ended.
        for line in file.read_text(encoding="ascii").rpartition("\n")[0].splitlines():
            row_id, org_id, at = line.split()
            found[uuid.UUID(org_id)][uuid.UUID(row_id)] = float(at)
    return found


def _out_of_order(first: Iterable[uuid.UUID], order: dict[uuid.UUID, Place]) -> int:
    """The records of `order` that arrived after a record of a later place."""
    places = [order[row_id] for row_id in first if row_id in order]
    return sum(before >= after for before, after in itertools.pairwise(places))


def _orders(on: Stage, org_id: uuid.UUID) -> list[dict[uuid.UUID, Place]]:
    """The final rows whose places can be compared: of both logs on PostgreSQL, of each log on SQLite.

    Source: docs/decisions/0042
    """
    of_logs = [_rows(on, table, org_id) for table in TABLES.values()]
    if not on.environment["DATABASE_URL"].startswith("postgres"):
        return of_logs  # each log counts its own positions
    return [{row_id: place for rows in of_logs for row_id, place in rows.items()}]


def _rows(on: Stage, table: str, org_id: uuid.UUID) -> dict[uuid.UUID, Place]:
    """The final rows of a log."""
    return {
        uuid.UUID(str(row_id)): (int(position), uuid.UUID(str(row_id)))
        for row_id, position in on.select(
            f"SELECT id, position FROM {table} WHERE position IS NOT NULL AND org_id = '{org_id.hex}'"
        )
    }

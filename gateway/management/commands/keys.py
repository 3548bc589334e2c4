"""`manage.py keys`: the keys of this deployment, by name. Prints no key."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from gateway.doctor.key_ages import KINDS, REMEDIES, KeyAge, all_keys, last_rotation
from gateway.keys.holders import running_names
from gateway.lib import clock
from gateway.lib.keyring import keyring

COLUMNS = ("kind", "name", "state", "since", "days", "rows", "wrapped by")


class Command(BaseCommand):
    help = (
        "Lists master keys, SECRET_KEY (by a fingerprint) and the keys that sign access tokens: which is in use, since"
        " when, and how many rows a master key seals. Prints no key."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, as_json: bool, **options: Any) -> None:
        now, keys = clock.now(), all_keys()
        rotated = {kind: last_rotation(kind, keys) for kind in KINDS}
        first = keyring().current_id
        holding, lacking = running_names(first, now)
        if as_json:
            found = {
                "keys": [self._as_json(key, now) for key in keys],
                "lastRotation": {kind.value: at and clock.rfc3339(at) for kind, at in rotated.items()},
                "processes": {"key": first, "holding": holding, "lacking": lacking},
            }
            self.stdout.write(json.dumps(found, indent=2))
            return
        self._print_table([self._cells(key, now) for key in keys])
        for kind, at in rotated.items():
            self.stdout.write(f"last rotation, {kind.value}: {clock.rfc3339(at) if at else 'none is known'}")
        self.stdout.write(f"{len(holding)} running processes have the master key {first}")
        for name in lacking:
            self.stdout.write(f"without it: {name}")
        for key in keys:
            if key.is_old(now):
                limit = f"KEY_AGE_WARNING_DAYS is {settings.KEY_AGE_WARNING_DAYS}"
                self.stdout.write(
                    f"warning: the {key.kind.value} key {key.name} is {key.days(now)} days old; {limit}."
                    f" {REMEDIES[key.kind]}"
                )

    @staticmethod
    def _as_json(key: KeyAge, now: Any) -> dict[str, object]:
        return {
            "kind": key.kind.value,
            "name": key.name,
            "state": key.state,
            "since": key.since and clock.rfc3339(key.since),
            "days": key.days(now),
            "isOld": key.is_old(now),
            "rows": key.rows,
            "wrappedBy": key.wrapped_by or None,
        }

    @staticmethod
    def _cells(key: KeyAge, now: Any) -> tuple[str, ...]:
        days = key.days(now)
        since = "not noted yet" if key.since is None else clock.rfc3339(key.since)
        rows = "" if key.rows is None else str(key.rows)
        return (key.kind.value, key.name, key.state, since, "" if days is None else str(days), rows, key.wrapped_by)

    def _print_table(self, rows: list[tuple[str, ...]]) -> None:
        widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
        for row in (COLUMNS, *rows):
            self.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

"""Seal every row again under the first key of CREDENTIAL_KEYS."""

from __future__ import annotations

import time

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.shipping.config_sealing import CONFIGS
from credentials.services.master_key import DATA_KEYS, rows_per_key_id
from credentials.services.vendor_revocations import REVOCATIONS
from gateway.keys.current import settle_master_key
from gateway.keys.holders import EVERY_S, HOLDS, led_by_another_key
from gateway.keys.resealing import BATCH_SIZE, SealedRows, per_key_id, reseal
from gateway.lib import clock
from gateway.lib.keyring import keyring
from oauth_ext.jwt.key_rows import SIGNING_KEYS
from orgs.services.alert_secret_sealing import SECRETS
from orgs.services.identity_sealing import REFRESH_TOKENS
from orgs.services.invitation_sealing import TOKENS

# Long enough for a process that was killed to count as ended.
WAIT_S = HOLDS.total_seconds() + EVERY_S
LOOK_EVERY_S = 2.0
OTHERS = (SIGNING_KEYS, TOKENS, REFRESH_TOKENS, CONFIGS, SECRETS, REVOCATIONS)


class Command(BaseCommand):
    """Spec: D68 · reliability.md 4 · docs/decisions/0087"""

    help = (
        "Seals everything again under the first key of CREDENTIAL_KEYS: every organization's data keys, the signing"
        " keys of access tokens, the tokens of invitations, the identity provider's refresh tokens and the"
        " configurations of log shipping. Safe to repeat and to interrupt; the service keeps running. Order of a"
        " rotation: write the new key before the old one, start every process with both, run this, and remove the"
        " old key with a later start, once `keys` counts no row of it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="change nothing; count the rows per key id")
        parser.add_argument("--batch-size", type=int, default=BATCH_SIZE, help="rows per transaction")
        parser.add_argument(
            "--wait", type=float, default=WAIT_S, help="seconds to wait for processes whose first key is another"
        )

    def handle(self, *, check: bool, batch_size: int, wait: float = WAIT_S, **options: object) -> None:
        """Exit code 1 if a row does not open or a process lacks the key, 2 for a bad option."""
        if not 1 <= batch_size <= 10_000:
            raise CommandError("--batch-size must be between 1 and 10000.", returncode=2)
        failed = 0
        if not check:
            self._wait_for_processes(wait)
            failed = self._rotate(batch_size)
        unreadable = self._report()
        if failed or unreadable:
            raise CommandError(f"{max(failed, unreadable)} rows cannot be opened: see above.", returncode=1)

    def _wait_for_processes(self, wait_s: float) -> None:
        ends_at_s, said = time.monotonic() + wait_s, ""
        while not settle_master_key():
            others = led_by_another_key(keyring().current_id, clock.now())
            words = f"{', '.join(others)}: the first key is not {keyring().current_id}"
            if time.monotonic() >= ends_at_s:
                order = ",".join(keyring().keys)
                raise CommandError(f"{words}. Start it with the order {order} in CREDENTIAL_KEYS.", returncode=1)
            if others and words != said:
                self.stdout.write(f"waiting for {words}")
                said = words
            time.sleep(min(LOOK_EVERY_S, max(0.0, ends_at_s - time.monotonic())))

    def _rotate(self, batch_size: int) -> int:
        """Returns how many rows do not open."""
        rewrapped, failed = self._reseal(DATA_KEYS, batch_size, "re-wrapped")
        for rows in OTHERS:
            failed += self._reseal(rows, batch_size, "sealed again")[1]
        self.stdout.write(f"done: {rewrapped} re-wrapped, {failed} failed")
        return failed

    def _reseal(self, rows: SealedRows, batch_size: int, done: str) -> tuple[int, int]:
        changed, failed, has_changed = 0, dict[str, str](), True
        # Another pass finds the rows that a process had begun to seal when the key changed.
        while has_changed:
            has_changed = False
            for batch in reseal(rows, batch_size=batch_size):
                changed += batch.resealed
                has_changed |= batch.resealed > 0
                failed |= {str(row.pk): str(row) for row in batch.failed}
                if batch.resealed:
                    self.stdout.write(f"{changed} {rows.what} {done}")
                    self.stdout.flush()
        if not changed:
            self.stdout.write(f"0 {rows.what} {done}")
        for name in failed.values():
            self.stderr.write(f"{name} does not open; left as it is")
        return changed, len(failed)

    def _report(self) -> int:
        """Print one line per key id; return the number of data keys whose key id is not configured."""
        unreadable = 0
        for count in rows_per_key_id():
            note = "" if count.configured else "  NOT in CREDENTIAL_KEYS: these rows cannot be opened"
            unreadable += 0 if count.configured else count.rows
            self.stdout.write(f"{count.key_id}: {count.rows} data keys{note}")
        for rows in OTHERS:
            for key_id, number in per_key_id(rows).items():
                self.stdout.write(f"{key_id}: {number} {rows.what}")
        return unreadable

"""Re-wrap data keys, re-seal signing keys and invitation tokens under the first key of CREDENTIAL_KEYS."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.shipping.config_sealing import configs_per_key_id, reseal_configs
from credentials.services.master_key import BATCH_SIZE, rewrap_data_keys, rows_per_key_id
from oauth_ext.jwt.rotation import reseal_signing_keys, signing_keys_per_key_id
from orgs.services.identity_sealing import refresh_tokens_per_key_id, reseal_refresh_tokens
from orgs.services.invitation_sealing import reseal_tokens, tokens_per_key_id


class Command(BaseCommand):
    """Spec: D68 · reliability.md 4"""

    help = (
        "Wraps every organization's data keys with the first key of CREDENTIAL_KEYS. Safe to repeat and to interrupt;"
        " the service keeps running. Order of a rotation: add the new key as the last entry everywhere, make it the"
        " first everywhere, run this, remove the old key when --check shows zero rows for it. The signing keys of"
        " access tokens, the tokens of open invitations, the identity provider's refresh tokens and the"
        " configurations of log shipping are sealed under CREDENTIAL_KEYS as well and go along."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="change nothing; count the data keys per key id")
        parser.add_argument("--batch-size", type=int, default=BATCH_SIZE, help="rows per transaction")

    def handle(self, *, check: bool, batch_size: int, **options: object) -> None:
        """Exit code 1 if a data key does not open, 2 for a bad option."""
        if not 1 <= batch_size <= 10_000:
            raise CommandError("--batch-size must be between 1 and 10000.", returncode=2)
        failed = 0 if check else self._rotate(batch_size)
        unreadable = self._report()
        if failed or unreadable:
            raise CommandError(f"{max(failed, unreadable)} data keys cannot be opened: see above.", returncode=1)

    def _rotate(self, batch_size: int) -> int:
        rewrapped = failed = 0
        for batch in rewrap_data_keys(batch_size=batch_size):
            rewrapped += batch.rewrapped
            failed += len(batch.failed)
            self.stdout.write(f"{rewrapped} data keys re-wrapped")
            for organization_id, version in batch.failed:
                self.stderr.write(f"data key {version} of organization {organization_id} does not open; left as it is")
        self.stdout.write(f"{reseal_signing_keys()} signing keys sealed again")
        self.stdout.write(f"{reseal_tokens()} invitation tokens sealed again")
        self.stdout.write(f"{reseal_refresh_tokens()} refresh tokens of the identity provider sealed again")
        self.stdout.write(f"{reseal_configs()} log shipping configurations sealed again")
        self.stdout.write(f"done: {rewrapped} re-wrapped, {failed} failed")
        return failed

    def _report(self) -> int:
        """Print one line per key id; return the number of data keys whose key id is not configured."""
        unreadable = 0
        for count in rows_per_key_id():
            note = "" if count.configured else "  NOT in CREDENTIAL_KEYS: these rows cannot be opened"
            unreadable += 0 if count.configured else count.rows
            self.stdout.write(f"{count.key_id}: {count.rows} data keys{note}")
        for key_id, rows in signing_keys_per_key_id().items():
            self.stdout.write(f"{key_id}: {rows} signing keys")
        for key_id, rows in tokens_per_key_id().items():
            self.stdout.write(f"{key_id}: {rows} invitation tokens")
        for key_id, rows in refresh_tokens_per_key_id().items():
            self.stdout.write(f"{key_id}: {rows} refresh tokens of the identity provider")
        for key_id, rows in configs_per_key_id().items():
            self.stdout.write(f"{key_id}: {rows} log shipping configurations")
        return unreadable

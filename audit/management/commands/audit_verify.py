"""`manage.py audit_verify`: compare the logs with their seals."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.query_values import moment_of
from audit.stream import Log
from audit.verification import verify
from gateway.lib.command_arguments import organization_id

_SEAL = re.compile(r"([1-9]\d{0,17}):([0-9a-f]{64})\Z", re.ASCII)

WRONG_OPTIONS = 2  # as argparse has it: nothing was verified


class Command(BaseCommand):
    """Exit code 1 when a row was changed, removed or inserted, or the end of a log is missing."""

    help = "Say whether each row of the logs is as it was sealed, and name the first that is not."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--org", help="the organization's id; default: all organizations")
        parser.add_argument("--since", help="a date or a time: only what was sealed from then on")
        parser.add_argument("--log", choices=[log.value for log in Log], help="default: both")
        parser.add_argument(
            "--seal", help="NUMBER:DIGEST of a seal as the service's log has it, with --org and --log: it must be there"
        )

    def handle(
        self,
        *args: Any,
        org: str | None,
        since: str | None,
        log: str | None,
        seal: str | None,
        **options: Any,
    ) -> None:
        org_id = organization_id(org)
        if seal and since:
            raise CommandError("--seal may be older than --since: give one of them.", returncode=WRONG_OPTIONS)
        expected = self._expected(seal, org_id is not None and log is not None)
        broken = False
        for each in [Log(log)] if log else list(Log):
            result = verify(each, org_id=org_id, since=_moment(since), expected=expected)
            self.stdout.write(
                f"{each.value}: {result.rows:,} rows match their {result.seals:,} seals; "
                f"{result.expired:,} removed by retention, {result.unsealed:,} not sealed yet"
            )
            for finding in result.findings:
                broken = True
                row = f" ({finding.row_id})" if finding.row_id else ""
                self.stdout.write(self.style.ERROR(f"{each.value} of {finding.org_id}: {finding.fault}{row}"))
        if broken:
            raise CommandError("The logs differ from their seals.")  # exit code 1. Contract: 6

    @staticmethod
    def _expected(seal: str | None, is_one_chain: bool) -> tuple[int, bytes] | None:
        if seal is None:
            return None
        match = _SEAL.match(seal)
        if match is None or not is_one_chain:
            raise CommandError("--seal takes NUMBER:DIGEST, and needs --org and --log.", returncode=WRONG_OPTIONS)
        return int(match[1]), bytes.fromhex(match[2])


def _moment(text: str | None) -> datetime | None:
    try:
        return moment_of(text) if text else None
    except ValueError as fault:
        raise CommandError(str(fault), returncode=WRONG_OPTIONS) from fault

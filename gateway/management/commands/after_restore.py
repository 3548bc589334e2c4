"""`manage.py after_restore`: ends again what had ended after the restored moment. Contract: 6"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.query_values import moment_of
from gateway.coordination import epochs, outbox
from gateway.lib import clock, revocation_journal
from gateway.lib.revocation_journal import EndKind, UnreadableJournal, WrittenEnd
from gateway.recovery.after_restore import end_again, end_everything
from gateway.recovery.restore import MARK


class Command(BaseCommand):
    help = (
        "Run once after a restore, before the service starts. With --journal, the things that ended after --at end"
        " again. Without it all sessions, tokens, agent keys, invitations and claims on mail"
        " domains of before --at end. It may be run again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--at", required=True, help="the moment of the backup, or a little before; UTC")
        parser.add_argument(
            "--journal", action="append", default=[], help="the lost installation's file; once for each of its hosts"
        )

    def handle(self, *args: Any, at: str, journal: list[str], **options: Any) -> None:
        restored_to = _moment(at)
        if journal:
            try:
                report = end_again(self._ends(journal, restored_to), restored_to=restored_to)
            except (UnreadableJournal, ValueError) as fault:
                raise CommandError(f"The journal cannot be used: {fault}") from None
        else:
            report = end_everything(restored_to=restored_to)
        for kind in EndKind:
            if report.ended[kind] or kind in _ALWAYS:
                self.stdout.write(f"{_NAMES[kind]}: {report.ended[kind]} ended")
        self.stdout.write(f"Written to the log of {report.organizations} organizations; {report.bumped} epochs bumped.")
        self.stdout.write(
            "Roles, teams, vendor access, limits of agents, allowed tools and log destinations are those of the backup:"
            " what was lowered or removed since is back. Check them."
        )
        if not journal:
            self.stdout.write(
                "Without a journal these stay as they were: memberships, deactivated people, support access,"
                " client secrets, service clients, credentials and deleted organizations. Check them."
            )
            self._name_a_journal()
        (settings.VAR / MARK).unlink(missing_ok=True)
        if not outbox.relayed_in_time():
            self.stdout.write(epochs.NOT_RELAYED_YET)

    def _ends(self, files: list[str], since: datetime) -> Iterator[WrittenEnd]:
        for file in files:
            yield from revocation_journal.read(Path(file), since, skipped=partial(self._half_a_line, file))

    def _half_a_line(self, file: str, number: int) -> None:
        self.stderr.write(f"{file}: line {number} is half a line, of a program that was killed while it wrote.")

    def _name_a_journal(self) -> None:
        path = settings.REVOCATION_JOURNAL
        if path is not None and path.is_file():
            self.stdout.write(f"There is a journal at {path}: --journal uses one.")


_ALWAYS = (EndKind.SESSION, EndKind.TOKEN_FAMILY, EndKind.AGENT_KEY)
_NAMES = {kind: kind.value.replace("_", " ") + "s" for kind in EndKind} | {
    EndKind.PERSON: "people",
    EndKind.SUPPORT_ACCESS: "support access",
    EndKind.TOKEN_FAMILY: "token families",
}


def _moment(text: str) -> datetime:
    try:
        moment = moment_of(text)
    except ValueError as fault:
        raise CommandError(str(fault)) from None
    if moment > clock.now():
        raise CommandError("--at is in the future: give the time of the backup.")
    return moment

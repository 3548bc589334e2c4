"""`manage.py doctor`: one verdict a line. Contract: 6"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.doctor.catalog import CHECKS
from gateway.doctor.runner import run
from gateway.doctor.verdict import Status, Verdict


class Command(BaseCommand):
    help = "Report what is wrong with this deployment, one verdict per line. Exit code 1 if one of them is an error."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json", help="a list of check, status and message")

    def handle(self, *args: Any, as_json: bool, **options: Any) -> None:
        # A server that is away is a verdict here; libraries would repeat it between the lines.
        logging.disable(logging.WARNING)
        try:
            found = self._verdicts(as_json)
        finally:
            logging.disable(logging.NOTSET)
        errors = sum(verdict.status is Status.ERROR for verdict in found)
        if errors:
            raise CommandError(f"{errors} of {len(found)} verdicts are errors.", returncode=1)

    def _verdicts(self, as_json: bool) -> list[Verdict]:
        found = []
        width = max(len(check.name) for check in CHECKS)
        for verdict in run(CHECKS):
            found.append(verdict)
            if not as_json:
                self.stdout.write(f"{verdict.status.value:<8} {verdict.check:<{width}}  {verdict.message}")
                self.stdout.flush()
        if as_json:
            self.stdout.write(json.dumps([asdict(verdict) for verdict in found], indent=2))
        return found

"""Compare subscriptions with the payment provider."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.errors import BillingUnavailable
from billing.mode import require_provider
from billing.reconciliation import Difference, all_customers, reconcile_all


class Command(BaseCommand):
    help = (
        "Compare each organization's subscription with the payment provider's and mend what differs. Exit code 0: all "
        "are equal or mended; 1: differences are left; 2: the provider gave no usable answer for some."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="say what differs and change nothing")

    def handle(self, *args: Any, dry_run: bool, **options: Any) -> None:
        try:
            require_provider()
        except BillingUnavailable:
            raise CommandError("BILLING_MODE is not stripe: there is nothing to compare with.") from None
        report = reconcile_all(all_customers(), is_dry_run=dry_run, is_time_left=lambda: True)
        for each in report.differences:
            self.stdout.write(_line(each, is_mended=each.can_be_mended and not dry_run))
        left = [each for each in report.differences if dry_run or not each.can_be_mended]
        self.stdout.write(f"{report.asked} compared, {len(report.differences)} differences, {len(left)} left.")
        if report.unasked:
            raise CommandError(f"The provider gave no usable answer for {report.unasked} or more.", returncode=2)
        if left:
            raise CommandError("Differences are left.", returncode=1)


def _line(found: Difference, *, is_mended: bool) -> str:
    end = "mended" if is_mended else "left as it is"
    return f"{found.organization_id} {found.subscription_id}: ours {found.ours}, the provider's {found.theirs}: {end}"

"""Removes expired tokens and unused clients at once instead of at the next full hour."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from gateway.lib import clock
from oauth_ext.services.cleanup import remove_expired_rows


class Command(BaseCommand):
    help = "Remove expired codes, tokens, device authorizations and consents, and unused self-registered clients."

    def handle(self, *args: Any, **options: Any) -> None:
        removed = asdict(remove_expired_rows(now=clock.now()))
        self.stdout.write(", ".join(f"{name.replace('_', ' ')} {count}" for name, count in removed.items()))

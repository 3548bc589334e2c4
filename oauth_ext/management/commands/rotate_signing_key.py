"""Rotates the signing key in the database, or prints the new value of TOKEN_SIGNING_KEYS if that is set."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.lib import clock
from gateway.lib.errors import Conflict
from oauth_ext.jwt import key_material, rotation


class Command(BaseCommand):
    help = (
        "Publish a new signing key, which signs an hour later; the old one stays published for two more hours. "
        "With TOKEN_SIGNING_KEYS set, print its new value instead: that output is secret."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--now",
            action="store_true",
            help="sign at once; clients that cached our keys refuse the new tokens until they refresh",
        )

    def handle(self, *args: Any, now: bool, **options: Any) -> None:
        if settings.TOKEN_SIGNING_KEYS:
            self._print_setting(at_once=now)
            return
        try:
            done = rotation.rotate_signing_key(at_once=now)
        except Conflict as refusal:
            # Exit status 1: a published key still waits for its hour.
            raise CommandError(refusal.message) from None
        self.stdout.write(f"{done.kid} is published and signs from {clock.rfc3339(done.signs_from)}.")
        if done.retiring:
            names = ", ".join(done.retiring)
            self.stdout.write(f"No longer published after {clock.rfc3339(done.retires_at)}: {names}.")

    def _print_setting(self, *, at_once: bool) -> None:
        old = key_material.parse_setting(settings.TOKEN_SIGNING_KEYS)
        new = key_material.generate(clock.now())
        pairs = (new, *old) if at_once else (*old, new)
        self.stderr.write(
            "WARNING: the next line holds private keys. Put it into TOKEN_SIGNING_KEYS of every process, nowhere else."
        )
        self.stdout.write(key_material.to_setting(pairs))
        if at_once:
            self.stderr.write(f"{new.kid} comes first and signs as soon as a process starts with this value.")
        else:
            self.stderr.write(
                f"{new.kid} comes last: it is published but does not sign. Move it to the front in an hour."
            )
        self.stderr.write("Remove an old key two hours after it stopped signing.")

"""`manage.py new_master_key ID`: an entry for CREDENTIAL_KEYS."""

from __future__ import annotations

import base64
import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.keys.wrapping import NEEDS, WrappingError
from gateway.lib.crypto import KEY_BYTES, Keyring
from gateway.lib.keyring import keyring

PLAIN = "none"


class Command(BaseCommand):
    help = (
        "Makes a master key and prints it as an entry of CREDENTIAL_KEYS. With a key service configured the entry is"
        " wrapped by it, and the key itself is shown to no one; otherwise the output is a secret."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key_id", metavar="ID", help="letters, digits and dashes, such as 2027")
        parser.add_argument("--with", dest="service", choices=(*NEEDS, PLAIN), help="the key service that wraps it")

    def handle(self, *args: Any, key_id: str, service: str | None, **options: Any) -> None:
        """Exit code 2 for a bad option, 1 when the key service does not wrap the key."""
        if key_id in keyring().keys:
            raise CommandError(f"CREDENTIAL_KEYS already has a key {key_id}.", returncode=2)
        key = os.urandom(KEY_BYTES)
        plain = f"{key_id}:{base64.b64encode(key).decode()}"
        try:
            Keyring.parse(plain)
        except ValueError as fault:
            raise CommandError(f"{key_id!r} cannot be the id: {fault}.", returncode=2) from None
        name = service or self._only_service()
        if name == PLAIN:
            self.stderr.write("No key service wraps this key: the next line is a secret.")
            self.stdout.write(plain)
            return
        if name not in settings.KEY_SERVICES:
            raise CommandError(f"{NEEDS[name]} is not set.", returncode=2)
        try:
            wrapped = settings.KEY_SERVICES[name].wrap(key_id, key)
            # A key that does not open again must not be put into use.
            if settings.KEY_SERVICES[name].unwrap(key_id, wrapped) != key:
                raise WrappingError(f"{name} opens the wrapped key as another one")
        except WrappingError as fault:
            raise CommandError(f"The key was not wrapped: {fault}.", returncode=1) from None
        self.stdout.write(f"{key_id}:{wrapped}")

    def _only_service(self) -> str:
        names = list(settings.KEY_SERVICES)
        if len(names) > 1:
            raise CommandError(f"Choose a key service. Add --with and one of: {', '.join(names)}.", returncode=2)
        return names[0] if names else PLAIN

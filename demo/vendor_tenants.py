"""Tenants of the demonstration vendor: one inventory per API key, bounded, stored without the key."""

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from demo.listening import StartError, write_once
from demo.vendor_inventory import Inventory, seeded_inventory

logger = logging.getLogger(__name__)

# Any well-formed key makes a tenant, so their number must be bounded.
MAX_TENANTS = 200
# Case-sensitive: the prefix is part of the key.
API_KEY = re.compile(r"demo-[A-Za-z0-9._~-]{7,195}")


@dataclass
class Tenant:
    """The inventory behind one API key, and the fingerprint that replaces the key."""

    fingerprint: str
    inventory: Inventory
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)


class TenantStore:
    """At most MAX_TENANTS inventories in memory and `directory`, least recently used first out.

    `clock` returns an aware UTC time. Raises: StartError when `directory` cannot be used.
    """

    def __init__(self, directory: Path, clock: Callable[[], datetime]) -> None:
        self._directory = directory / "tenants"
        self._clock = clock
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # None: on disk, not read yet. Those count too, otherwise restarts would evade the limit.
            files = sorted(self._directory.glob("*.json"), key=lambda path: path.stat().st_mtime)
            self._tenants: OrderedDict[str, Tenant | None] = OrderedDict.fromkeys(path.stem for path in files)
            # A pepper, because a key may be as short as "demo-" and a name, so that a plain hash could be guessed.
            self._pepper = write_once(directory / "fingerprint.key", secrets.token_bytes(32))
        except OSError as error:
            raise StartError(f"--data {directory} cannot be used: {error.strerror}") from error

    def fingerprint(self, api_key: str) -> str:
        """16 hex digits of an HMAC of the key, stable across restarts."""
        return hmac.new(self._pepper, api_key.encode(), hashlib.sha256).hexdigest()[:16]

    def tenant(self, fingerprint: str) -> Tenant:
        """The tenant, as stored or with its initial inventory."""
        tenant = self._tenants.pop(fingerprint, None)
        while len(self._tenants) >= MAX_TENANTS:
            self._forget(next(iter(self._tenants)))
        if tenant is None:
            tenant = Tenant(fingerprint, self._read(fingerprint) or seeded_inventory(fingerprint, now=self._clock()))
        self._tenants[fingerprint] = tenant
        return tenant

    async def save(self, tenant: Tenant) -> None:
        async with tenant.writing:  # writes in order, so that the latest one stays
            # A tenant that was evicted meanwhile stays deleted.
            if self._tenants.get(tenant.fingerprint) is tenant:
                content = tenant.inventory.model_dump_json().encode()
                await asyncio.to_thread(_replace, self._path(tenant.fingerprint), content)

    def __len__(self) -> int:
        return len(self._tenants)

    def _path(self, fingerprint: str) -> Path:
        return self._directory / f"{fingerprint}.json"

    def _read(self, fingerprint: str) -> Inventory | None:
        try:
            return Inventory.model_validate_json(self._path(fingerprint).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            logger.warning("tenant %s starts afresh: its file cannot be read (%s)", fingerprint, type(error).__name__)
            return None

    def _forget(self, fingerprint: str) -> None:
        del self._tenants[fingerprint]
        with suppress(FileNotFoundError):
            self._path(fingerprint).unlink()


def _replace(path: Path, content: bytes) -> None:
    # Atomic: a reader sees the old file or the new one.
    draft = path.with_suffix(".draft")
    draft.write_bytes(content)
    draft.replace(path)

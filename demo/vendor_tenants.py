"""The tenants of the demonstration vendor: one inventory per API key, bounded, kept on disk without the key."""

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

MAX_TENANTS = 200
# Lower-case on purpose: the prefix is part of the key, and keys are compared as they are.
API_KEY = re.compile(r"demo-[A-Za-z0-9._~-]{7,195}")


@dataclass
class Tenant:
    """One API key's share: the fingerprint that stands for the key, and what the key sees."""

    fingerprint: str
    inventory: Inventory
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)


class TenantStore:
    """Inventories by API key. At most MAX_TENANTS are kept, in memory and in `directory`; the one used least
    recently goes first.

    `clock` returns an aware UTC time. Raises: StartError when `directory` cannot be used.
    """

    def __init__(self, directory: Path, clock: Callable[[], datetime]) -> None:
        self._directory = directory / "tenants"
        self._clock = clock
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # None: on disk and not read yet. Those count as well, or restarts would get around the bound.
            files = sorted(self._directory.glob("*.json"), key=lambda path: path.stat().st_mtime)
            self._tenants: OrderedDict[str, Tenant | None] = OrderedDict.fromkeys(path.stem for path in files)
            # A pepper, since a key may be as short as "demo-" and a name: its plain hash could be guessed.
            self._pepper = write_once(directory / "fingerprint.key", secrets.token_bytes(32))
        except OSError as error:
            raise StartError(f"--data {directory} cannot be used: {error.strerror}") from error

    def fingerprint(self, api_key: str) -> str:
        """16 hex digits that stand for the key and do not lead back to it; the same after a restart."""
        return hmac.new(self._pepper, api_key.encode(), hashlib.sha256).hexdigest()[:16]

    def tenant(self, fingerprint: str) -> Tenant:
        """The tenant behind a fingerprint, as it was left, or with the devices it starts with."""
        tenant = self._tenants.pop(fingerprint, None)
        while len(self._tenants) >= MAX_TENANTS:
            self._forget(next(iter(self._tenants)))
        if tenant is None:
            tenant = Tenant(fingerprint, self._read(fingerprint) or seeded_inventory(fingerprint, now=self._clock()))
        self._tenants[fingerprint] = tenant
        return tenant

    async def save(self, tenant: Tenant) -> None:
        """What the tenant has now is on disk, unless the tenant was forgotten meanwhile."""
        async with tenant.writing:  # the later of two writes must also be the one that stays
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
    draft = path.with_suffix(".draft")
    draft.write_bytes(content)
    draft.replace(path)

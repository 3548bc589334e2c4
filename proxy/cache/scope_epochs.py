"""The epoch of each scope and vendor, under which results are kept in all processes until a write."""

from __future__ import annotations

import asyncio

import structlog

from gateway.coordination.store import CoordinationStore, CoordinationUnavailable
from gateway.lib.background_tasks import BackgroundTasks
from proxy.single_flight import SingleFlight

log = structlog.get_logger(__name__)


class ScopeEpochs:
    def __init__(self, store: CoordinationStore) -> None:
        self._store = store
        self._beginning: SingleFlight[str, str | None] = SingleFlight()
        self._renewing = BackgroundTasks()
        self._not_renewed: set[str] = set()  # unused in this process until the store takes the renewal

    async def current(self, name: str, seen: str | None = None) -> str | None:
        """The current epoch; `seen` if just read. None while the store is away: then nothing is kept or used."""
        if name in self._not_renewed:
            await self.renew(name)
            if name in self._not_renewed:
                return None
            seen = None
        # An empty value gets an epoch: a store that lost its data is empty as well.
        value = seen if seen is not None else await self._read(name)
        return await self._beginning.run(name, lambda: self._begin(name)) if value == "" else value

    async def renew(self, name: str) -> None:
        """Invalidate the results under `name`, in all processes; call it after the write's outcome."""
        # Shielded: the renewal must happen even if the caller leaves.
        await asyncio.shield(self._renewing.start(self._renew(name)))

    async def _renew(self, name: str) -> None:
        try:
            # While the store is away no process uses kept results; coordination.fallback_store makes up for renewals.
            await self._store.renew_epoch(name)
        except CoordinationUnavailable as fault:
            self._not_renewed.add(name)
            log.warning("kept results not dropped", epoch=name, fault=str(fault))
        else:
            self._not_renewed.discard(name)

    async def _begin(self, name: str) -> str | None:
        try:
            values = await self._store.begin_epochs([name])
        except CoordinationUnavailable:
            return None
        return None if values is None else values[0] or None

    async def _read(self, name: str) -> str | None:
        try:
            values = await self._store.read_epochs([name])
        except CoordinationUnavailable:
            return None
        return None if values is None else values[0]

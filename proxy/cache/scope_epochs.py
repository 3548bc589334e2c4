"""The epoch of each scope and vendor: the value under which results are kept, in all processes, until a write."""

from __future__ import annotations

import asyncio

import structlog

from gateway.coordination.store import CoordinationStore, CoordinationUnavailable
from proxy.single_flight import SingleFlight

log = structlog.get_logger(__name__)


class ScopeEpochs:
    """Over the coordination store. One event loop."""

    def __init__(self, store: CoordinationStore) -> None:
        self._store = store
        self._beginning: SingleFlight[str, str | None] = SingleFlight()
        self._renewing: set[asyncio.Task[None]] = set()
        self._not_renewed: set[str] = set()

    async def current(self, name: str, seen: str | None = None) -> str | None:
        """The value under which a result may be kept or used, None while nobody can say: then nothing is kept.

        `seen` is the value if it was just read with something else. A name without a value gets one, because "no
        value" is also what a store says that lost its memory.
        """
        if name in self._not_renewed:
            await self.renew(name)
            if name in self._not_renewed:
                return None
            seen = None
        value = seen if seen is not None else await self._read(name)
        return await self._beginning.run(name, lambda: self._begin(name)) if value == "" else value

    async def renew(self, name: str) -> None:
        """Nothing that was kept under `name` is used any more, in any process; also if the caller leaves meanwhile.

        Call it after the write's outcome. Where no value stands then, nothing is kept anywhere: whoever begins now
        reads what the write has left. While the store is away no process uses kept results, and the renewal is made up
        for before they are used again (gateway.coordination.degrading). If the file of one host is locked, this process
        uses nothing under `name` until the file has taken the renewal.
        """
        task = asyncio.ensure_future(self._renew(name))
        self._renewing.add(task)
        task.add_done_callback(self._renewing.discard)
        await asyncio.shield(task)

    async def _renew(self, name: str) -> None:
        try:
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

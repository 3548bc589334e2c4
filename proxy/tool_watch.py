"""Vendors change their tools: a new description can tell an agent something nobody agreed to. Changes are written down.

Each new list is compared with what the organization saw last, in a thread of its own, behind the call that fetched it.
An allowlist is never extended: what is new on a list is called by nobody until somebody says so.

Spec: D78, D82 · reliability.md 2 (CVE-2025-54136)
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import structlog

from audit.actor import system
from credentials.selectors import connections
from gateway.lib.errors import NotFound
from orgs import selectors
from orgs.services.known_tools import note_tools
from proxy.protocol.tool_definitions import Definition, agreed_json
from proxy.snapshot import Snapshots, SnapshotUnavailable
from proxy.vendors.pool import PoolKey

log = structlog.get_logger(__name__)
ACTOR = system("tool watch")
MAX_REMEMBERED = 5_000


class ToolWatch:
    """One event loop. `note` returns at once."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="tool-watch")
        self._tasks: set[asyncio.Task[None]] = set()
        self._remembered: OrderedDict[PoolKey, bytes] = OrderedDict()

    def note(self, key: PoolKey, definitions: Mapping[str, Definition]) -> None:
        """Compare a list that was just fetched, soon."""
        task = asyncio.ensure_future(self._note(key, definitions))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Every list so far has been compared, or could not be in time."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def aclose(self) -> None:
        """Finish what has begun."""
        await self.settled()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _note(self, key: PoolKey, definitions: Mapping[str, Definition]) -> None:
        work = partial(_compare, key, definitions, self._remembered.get(key, b""))
        try:
            self._remembered[key] = await self._snapshots.run(work, self._threads)
        except SnapshotUnavailable as fault:  # compared again when it is fetched again
            log.warning("tool list not compared", vendor=key.vendor, fault=str(fault))
            return
        self._remembered.move_to_end(key)
        if len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)


def _compare(key: PoolKey, definitions: Mapping[str, Definition], remembered: bytes) -> bytes:
    """Write down what changed, unless the list is the `remembered` one; its fingerprint.

    Only one credential's lists are compared, the most general: another may show its holder other tools, and to take
    turns between two lists is no change.
    """
    agreed = {name: agreed_json(definition) for name, definition in definitions.items()}
    fingerprint = hashlib.sha256(b"".join(agreed[name] for name in sorted(agreed))).digest()
    organization = None if fingerprint == remembered else selectors.organization(key.org_id)
    if organization is not None:
        watched = connections(organization, vendor=key.vendor)
        if watched and watched[0].id == key.credential_id:
            try:
                note_tools(
                    organization=organization, vendor=key.vendor, definitions=agreed, is_whole_list=True, actor=ACTOR
                )
            except NotFound:
                log.info("organization ended while its tools were compared", org_id=str(key.org_id))
    return fingerprint

"""The gauges of a web process, and the file that holds its figures. Spec: contract.md 7 · docs/decisions/0076"""

from __future__ import annotations

import asyncio

from audit.writer import AuditWriter
from gateway.coordination import backend
from gateway.lib.metrics import call_tally, names
from gateway.lib.metrics.process_file import ProcessFile
from gateway.lib.pool_counts import pool_counts
from proxy.vendors.pool import SessionPool
from proxy.vendors.transport import VendorTransport

EVERY_S = 1.0


class ProcessGauges:
    """Of one event loop, which reads its own parts; a thread writes the file."""

    def __init__(self, file: ProcessFile, audit: AuditWriter, pool: SessionPool, transport: VendorTransport) -> None:
        self._file, self._audit, self._pool, self._transport = file, audit, pool, transport

    async def write(self) -> None:
        """Raises: OSError."""
        self.read()
        await asyncio.to_thread(self._file.write)

    def read(self) -> None:
        """The figures are those of now."""
        call_tally.settle()
        names.AUDIT_WAITING.set(self._audit.pending_count)
        names.AUDIT_OUTAGE.set(self._audit.outage.is_active)
        names.DEGRADED.set(backend.is_away())
        names.CIRCUIT_OPEN.replace({(vendor,): 1.0 for vendor in self._pool.circuits.open_vendors()})
        names.VENDOR_SESSIONS.set(self._pool.session_count)
        busy, idle = self._transport.connection_counts()
        names.VENDOR_CONNECTIONS.set(busy, "busy")
        names.VENDOR_CONNECTIONS.set(idle, "idle")
        for counts in pool_counts():
            names.DATABASE_CONNECTIONS.set(counts.busy, counts.pool, "busy")
            names.DATABASE_CONNECTIONS.set(counts.idle, counts.pool, "idle")
            names.DATABASE_WAITING.set(counts.waiting, counts.pool)

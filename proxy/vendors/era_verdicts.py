"""The revision of MCP that each vendor speaks, as it said itself, with the date: for all processes.

A verdict belongs to a vendor, an address and a credential. That a vendor speaks the modern revision is believed until
it says otherwise. That it does not is asked again after a day: nothing else would show that it does by now.
docs/decisions/0106
"""

from __future__ import annotations

import asyncio
import hmac
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import structlog
from django.conf import settings

from gateway.coordination.store import CoordinationStore, CoordinationUnavailable
from gateway.lib import clock
from gateway.lib.bounded import put_newest
from proxy.protocol.modern.revision import SERVED
from proxy.vendors.destination import PoolKey

log = structlog.get_logger(__name__)
DAY_S = 86_400.0
KEPT_S = 30 * 86_400  # in the store
# An answer that says nothing about the revision is not asked for again so soon.
PROVISIONAL_S = 3_600.0
# Between two questions that a mere doubt has raised.
DOUBT_EVERY_S = 10.0


class Verdict(msgspec.Struct, frozen=True):
    """`version`: the newest that vendor and gateway both speak. `at_s`: Unix time. `place`: names the address."""

    version: str
    at_s: float
    place: bytes
    is_provisional: bool = False  # the vendor did not say; known to this process only
    # Of `item_kinds`, as a vendor of the modern revision declared them: it has no handshake that would repeat them.
    capabilities: tuple[str, ...] = ()

    @property
    def is_modern(self) -> bool:
        return self.version in SERVED

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.at_s, UTC)

    def is_outdated(self, now_s: float) -> bool:
        longest_s = PROVISIONAL_S if self.is_provisional else DAY_S
        return not self.is_modern and not 0 <= now_s - self.at_s < longest_s


_decoder = msgspec.msgpack.Decoder(Verdict)


class EraVerdicts:
    """One event loop. A store that is away knows nothing, and the vendor is asked."""

    def __init__(
        self, store: CoordinationStore | None, secret: bytes, *, max_verdicts: int, now_s: Callable[[], float]
    ) -> None:
        """`secret` is the deployment's. `now_s`: Unix time."""
        self._store = store
        self._names = hmac.digest(secret, b"vendor-eras|places", "sha256")
        self._max_verdicts = max_verdicts
        self._now_s = now_s
        self._verdicts: OrderedDict[bytes, Verdict] = OrderedDict()  # by place
        self._given_up: OrderedDict[bytes, float] = OrderedDict()  # dates of verdicts, by place

    async def known(self, key: PoolKey) -> Verdict | None:
        """The vendor's last word; None if it must be asked."""
        place = self._place(key)
        found = self._verdicts.get(place)
        if found is None:
            found = await self._stored(key, place)
            if found is not None:
                self._remember(found)
        return None if found is None or found.is_outdated(self._now_s()) else found

    async def keep(
        self, key: PoolKey, version: str, *, is_provisional: bool = False, capabilities: Iterable[str] = ()
    ) -> Verdict:
        verdict = Verdict(version, self._now_s(), self._place(key), is_provisional, tuple(sorted(capabilities)))
        self._remember(verdict)
        self._given_up.pop(verdict.place, None)
        if self._store is not None and not is_provisional:
            try:
                value = msgspec.msgpack.encode(verdict)
                await asyncio.to_thread(self._store.put_health, _name(key.vendor, key.credential_id), value, KEPT_S)
            except CoordinationUnavailable as fault:
                log.info("revision of a vendor not shared", vendor=key.vendor, fault=str(fault))
        return verdict

    def is_outdated(self, verdict: Verdict) -> bool:
        """Whether the vendor should be asked again, at a good moment."""
        return verdict.is_outdated(self._now_s()) or self.is_old(verdict)

    def is_old(self, verdict: Verdict) -> bool:
        """Whether the vendor may declare other capabilities by now."""
        return not 0 <= self._now_s() - verdict.at_s < DAY_S

    def may_doubt(self, verdict: Verdict) -> bool:
        """Whether a verdict that only seems to be wrong may be given up now."""
        return not 0 <= self._now_s() - verdict.at_s < DOUBT_EVERY_S

    def give_up(self, key: PoolKey, verdict: Verdict | None) -> None:
        """The vendor has contradicted this verdict: ask it, unless another process has done so since."""
        place = self._place(key)
        if verdict is None or self._verdicts.get(place) not in (verdict, None):
            return  # a newer verdict is there
        self._verdicts.pop(place, None)
        put_newest(self._given_up, place, verdict.at_s, self._max_verdicts)

    async def _stored(self, key: PoolKey, place: bytes) -> Verdict | None:
        if self._store is None:
            return None
        name = _name(key.vendor, key.credential_id)
        try:
            raw = (await asyncio.to_thread(self._store.health, [name])).get(name)
        except CoordinationUnavailable:
            return None
        found = _decoded(raw)
        if found is None or found.place != place or found.at_s <= self._given_up.get(place, -math.inf):
            return None
        return found

    def _remember(self, verdict: Verdict) -> None:
        put_newest(self._verdicts, verdict.place, verdict, self._max_verdicts)

    def _place(self, key: PoolKey) -> bytes:
        # A plain digest of an address would let readers of the store try weak secrets in it.
        return hmac.digest(self._names, key.place, "sha256")


def configured_verdicts(store: CoordinationStore | None) -> EraVerdicts:
    """Verdicts under the bounds of the settings."""
    return EraVerdicts(
        store,
        settings.SECRET_KEY.encode(),
        max_verdicts=settings.VENDOR_SESSIONS,
        now_s=lambda: clock.now().timestamp(),
    )


def stored_verdicts(store: CoordinationStore, credentials: Iterable[tuple[str, UUID]]) -> Mapping[UUID, Verdict]:
    """The last verdicts, for pages and commands. `credentials`: vendor and id. Raises: CoordinationUnavailable."""
    names = {_name(vendor, each): each for vendor, each in credentials}
    found = {names[name]: _decoded(raw) for name, raw in store.health(list(names)).items() if name in names}
    return {credential: verdict for credential, verdict in found.items() if verdict is not None}


def _decoded(raw: bytes | None) -> Verdict | None:
    if raw is None:
        return None
    try:
        return _decoder.decode(raw)
    except msgspec.MsgspecError:  # of another version of the service
        return None


def _name(vendor: str, credential_id: UUID) -> str:
    return f"era:{vendor}:{credential_id}"

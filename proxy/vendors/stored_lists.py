"""Tool lists that processes share, sealed in a store that may lose them. docs/decisions/0051

A pointer per credential names a list and its age; a body per list is shared by all credentials that got it.
"""

from __future__ import annotations

import hmac
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import msgspec
import structlog
from msgspec import Raw

from gateway.catalog.vendor import Vendor
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib.bounded import put_newest
from gateway.lib.crypto import CryptoError, open_sealed, seal
from proxy.vendors import fair_scheduler
from proxy.vendors.destination import PoolKey
from proxy.vendors.tool_list import MAX_LIST_BYTES, ReceivedList

log = structlog.get_logger(__name__)
T = TypeVar("T")
_COMPRESSION = 1  # the fastest: lists are repetitive
# Two of the longest lists. A body lives for two hours, so three hours' bytes are there at once: with four processes,
# a store of 512 MB holds what five organizations could waste.
BODY_BYTES_PER_HOUR = 8 * 1024 * 1024
HOUR_S = 3_600.0
LEAST_BYTES = 8 * 1024  # that one body counts: bounds the bodies of an hour to a thousand
MAX_ORGANIZATIONS = 10_000  # that are counted; a round number


class Blobs(Protocol):
    """gateway.coordination.blob_store. Each method raises CoordinationUnavailable."""

    max_value_bytes: int  # larger values are not stored

    async def get(self, name: str) -> bytes | None: ...
    async def size(self, name: str) -> int: ...
    async def put(self, name: str, value: bytes, ttl_s: int) -> None: ...
    async def extend(self, name: str, ttl_s: int) -> bool: ...
    async def claim(self, name: str, ttl_s: int) -> bool: ...


class _Pointer(msgspec.Struct, frozen=True, array_like=True):
    digest: bytes
    size_bytes: int
    fetched_at_s: float  # Unix time


class _Seen(msgspec.Struct, frozen=True, array_like=True):
    seen_at_s: float  # Unix time


class StoredList(msgspec.Struct, frozen=True):
    """A list in the store, as its pointer names it."""

    digest: bytes
    size_bytes: int  # as received
    age_s: float


@dataclass(slots=True)
class _Hour:
    """Bytes and lists that one organization has stored, and kept stored, since `began_s`."""

    began_s: float
    used_bytes: int = 0
    digests: set[bytes] = field(default_factory=set)


class _Budget:
    """Bytes of bodies that each organization stores or renews in an hour, each body once.

    Some vendors let customers write their tools.
    """

    def __init__(self) -> None:
        self._hours: OrderedDict[Hashable, _Hour] = OrderedDict()

    def has_paid(self, org_id: Hashable, digest: bytes, now_s: float) -> bool:
        return digest in self._hour(org_id, now_s).digests

    def take(self, org_id: Hashable, digest: bytes, size_bytes: int, now_s: float) -> bool:
        hour, counted = self._hour(org_id, now_s), max(size_bytes, LEAST_BYTES)
        if hour.used_bytes + counted > BODY_BYTES_PER_HOUR:
            return False
        hour.used_bytes += counted
        hour.digests.add(digest)
        put_newest(self._hours, org_id, hour, MAX_ORGANIZATIONS)
        return True

    def _hour(self, org_id: Hashable, now_s: float) -> _Hour:
        known = self._hours.get(org_id)
        return known if known is not None and 0 <= now_s - known.began_s < HOUR_S else _Hour(now_s)


class StoredLists:
    """One event loop. A store that is away, and a value that does not open or does not fit its name, are misses."""

    def __init__(self, store: Blobs, secret: bytes, *, ttl_s: int, now_s: Callable[[], float]) -> None:
        """`secret` is the deployment's. `ttl_s`: of a pointer and its list. `now_s`: Unix time."""
        self._store = store
        self._names = hmac.digest(secret, b"tool-lists|names", "sha256")
        self._key = hmac.digest(secret, b"tool-lists|values", "sha256")
        self._ttl_s = ttl_s
        self._now_s = now_s
        self._budget = _Budget()

    async def find(self, key: PoolKey) -> StoredList | None:
        """The list that a process fetched last with the credential."""
        pointer = self._opened(await self._get("index", key.digest), _index_aad(key), _Pointer)
        if pointer is None:
            return None
        return StoredList(pointer.digest, pointer.size_bytes, max(0.0, self._now_s() - pointer.fetched_at_s))

    async def body(self, vendor: Vendor, key: PoolKey, found: StoredList) -> ReceivedList | None:
        """The list as the vendor sent it."""
        sealed = await self._get("list", found.digest)
        if sealed is None:
            return None
        work = partial(self._read_body, vendor, found, sealed)
        return await fair_scheduler.run_small_inline(key.org_id, work, found.size_bytes)

    async def put(self, key: PoolKey, received: ReceivedList) -> None:
        """Store a list that was just fetched from an address of the catalog, within its organization's budget."""
        digest, at_s = received.digest, self._now_s()
        try:
            if not await self._keep_body(key, received, at_s):
                return
            pointer = msgspec.msgpack.encode(_Pointer(digest, received.size_bytes, at_s))
            await self._store.put(self._name("index", key.digest), self._sealed(pointer, _index_aad(key)), self._ttl_s)
            seen = self._sealed(msgspec.msgpack.encode(_Seen(at_s)), _seen_aad(digest))
            await self._store.put(self._name("seen", digest), seen, self._ttl_s)
        except CoordinationUnavailable as fault:
            log.info("tool list not stored", vendor=key.vendor, fault=str(fault))

    async def _keep_body(self, key: PoolKey, received: ReceivedList, at_s: float) -> bool:
        """Store or renew the body, at the organization's cost. Whether it is stored."""
        org_id, digest = key.org_id, received.digest
        name, ttl_s = self._name("list", digest), 2 * self._ttl_s  # so that no pointer outlives its list
        if self._budget.has_paid(org_id, digest, at_s) and await self._store.extend(name, ttl_s):
            return True
        body, size_bytes = b"", await self._store.size(name)
        if not size_bytes:
            work = partial(self._sealed_body, received)
            body = await fair_scheduler.run_small_inline(org_id, work, received.size_bytes)
            size_bytes = len(body)
        if size_bytes > self._store.max_value_bytes:
            log.info("tool list not stored", vendor=key.vendor, fault="too large")
            return False
        if not self._budget.take(org_id, digest, size_bytes, at_s):
            log.info("tool list not stored", vendor=key.vendor, fault="over the organization's budget")
            return False
        if not body:
            return await self._store.extend(name, ttl_s)
        await self._store.put(name, body, ttl_s)
        return True

    async def seen_ago_s(self, digest: bytes) -> float | None:
        """Seconds since a process fetched this list from an address of the catalog."""
        seen = self._opened(await self._get("seen", digest), _seen_aad(digest), _Seen)
        return None if seen is None else max(0.0, self._now_s() - seen.seen_at_s)

    async def claim(self, key: PoolKey, ttl_s: int) -> bool:
        """Whether this process may ask the vendor now: True as well while the store is away."""
        try:
            return await self._store.claim(self._name("lease", key.digest), ttl_s)
        except CoordinationUnavailable:
            return True

    async def _get(self, kind: str, name: bytes) -> bytes | None:
        try:
            return await self._store.get(self._name(kind, name))
        except CoordinationUnavailable:
            return None

    def _name(self, kind: str, name: bytes) -> str:
        # A plain digest of a credential's headers would let readers of the store try weak secrets.
        return f"tools:{kind}:{hmac.digest(self._names, kind.encode() + b'|' + name, 'sha256').hex()}"

    def _sealed(self, plain: bytes, aad: bytes) -> bytes:
        return seal(self._key, plain, aad)

    def _sealed_body(self, received: ReceivedList) -> bytes:
        text = b"[" + b",".join(bytes(each) for each in received.tools) + b"]"
        return self._sealed(zlib.compress(text, _COMPRESSION), _list_aad(received.digest))

    def _opened(self, sealed: bytes | None, aad: bytes, kind: type[T]) -> T | None:
        if sealed is None:
            return None
        try:
            return msgspec.msgpack.decode(open_sealed(self._key, sealed, aad), type=kind)
        except (CryptoError, msgspec.MsgspecError) as fault:
            log.warning("stored tool list not read", fault=type(fault).__name__)
            return None

    def _read_body(self, vendor: Vendor, found: StoredList, sealed: bytes) -> ReceivedList | None:
        try:
            tools = _unpacked(open_sealed(self._key, sealed, _list_aad(found.digest)))
        except (CryptoError, zlib.error, msgspec.MsgspecError) as fault:
            log.warning("stored tool list not read", fault=type(fault).__name__)
            return None
        received = ReceivedList.of(vendor, tools, found.size_bytes)
        # Another digest: the catalog has changed since, and the list would be read in another way.
        return received if received.digest == found.digest else None


def _unpacked(packed: bytes) -> list[Raw]:
    """Raises: zlib.error; msgspec.MsgspecError."""
    reader = zlib.decompressobj()
    text = reader.decompress(packed, MAX_LIST_BYTES)
    if not reader.eof:
        raise zlib.error("too long")
    return msgspec.json.decode(text, type=list[Raw])


def _index_aad(key: PoolKey) -> bytes:
    """Binds a pointer to its organization, vendor, credential, address and headers: all of them are in the digest."""
    return b"tool-index|" + key.digest


def _list_aad(digest: bytes) -> bytes:
    return b"tool-list|" + digest


def _seen_aad(digest: bytes) -> bytes:
    return b"tool-list-seen|" + digest

"""Memory of tool lists and vendor sessions of many organizations, in one process without network.

    python -m bench.tool_lists [ORGANIZATIONS]

10,000 organizations by default, with three vendors each, which show every organization the same list.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
import uuid
from collections.abc import Callable
from typing import TypeVar

import msgspec

from bench import part_app  # configures Django  # noqa: F401
from gateway.catalog.tool_config import ToolConfig
from gateway.catalog.vendor import Vendor
from proxy.protocol import replies
from proxy.vendors.bulkhead import Bulkhead
from proxy.vendors.circuits import Circuits
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.handshake_session import HandshakeSession
from proxy.vendors.http1 import Limits
from proxy.vendors.pool import SessionPool
from proxy.vendors.tool_list import ReceivedList, read_list
from proxy.vendors.tool_list_cache import ToolIndex, ToolListCache
from proxy.vendors.transport import VendorTransport
from proxy.vendors.vendor_access import VendorAccess

LIMITS = Limits(connect_s=5.0, chunk_s=10.0, body_bytes=10 * 1024 * 1024)
VENDORS = ("acme", "globex", "initech")
TOOLS = 24
T = TypeVar("T")
TEXT = "Does one thing to the objects of a site, and says what it did. "


def bytes_of(make: Callable[[], T]) -> tuple[T, int]:
    """The value of `make`, and the memory that it keeps."""
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    made = make()
    gc.collect()
    return made, tracemalloc.get_traced_memory()[0] - before


def received(vendor: Vendor, tools: int) -> ReceivedList:
    """A list of `tools` tools with five arguments each: about 700 bytes a tool."""
    schema = {
        "type": "object",
        "properties": {f"argument_{n}": {"type": "string", "description": TEXT[:25]} for n in range(5)},
    }
    listed = [{"name": f"tool_{n}", "description": TEXT * 3, "inputSchema": schema} for n in range(tools)]
    raw = msgspec.json.encode({"tools": listed})
    return ReceivedList.of(vendor, replies.raw_tools_page(raw).tools, len(raw))


def one_list(tools: int) -> str:
    vendor = Vendor(slug="acme", name="Acme", url="https://acme.example/mcp")
    sent = received(vendor, tools)
    (content, _), used = bytes_of(lambda: read_list(vendor, sent, ToolConfig()))
    return f"{tools:6} tools: {sent.size_bytes:9,} bytes received, {used:9,} parsed, counted as {content.kept_bytes:,}"


def lists(keys: list[PoolKey]) -> str:
    vendors = {slug: Vendor(slug=slug, name=slug, url=f"https://{slug}.example/mcp") for slug in VENDORS}
    sent = {slug: received(vendor, TOOLS) for slug, vendor in vendors.items()}
    config = ToolConfig()

    def fill() -> ToolListCache:
        cache = ToolListCache(max_indexes=10_000_000, max_list_bytes=1 << 40)
        for key in keys:
            content = cache.content(sent[key.vendor].digest)
            if content is None:
                content, _ = read_list(vendors[key.vendor], sent[key.vendor], config)
            cache.put(key, ToolIndex(content, time.monotonic()))
        return cache

    cache, used = bytes_of(fill)
    assert isinstance(cache, ToolListCache)
    each = (used - cache.list_bytes) / len(keys)
    return f"{len(keys):,} indexes of {cache.distinct} lists: {used:,} bytes, {each:,.0f} for each index"


def sessions(keys: list[PoolKey], max_awake: int) -> str:
    """Sessions that have sent a request, of vendors that issue session ids. Their destinations are not counted."""
    transport = VendorTransport(allow_private=True, limits=LIMITS, connections_per_origin=100)
    pool = SessionPool(
        transport,
        idle_s=300.0,
        max_sessions=10_000_000,
        max_awake=max_awake,
        bulkhead=Bulkhead(calls=30, max_queued=100, wait_s=5.0),
        circuits=Circuits(trial_s=LIMITS.connect_s, max_circuits=100),
    )
    destinations = [_destination(key) for key in keys]

    def fill() -> None:
        for destination in destinations:
            session = HandshakeSession(transport, VendorAccess.of(destination), destination, listener=pool)
            session.session_id = uuid.uuid4().hex
            session.prepare()
            pool.keep(destination.key, session)

    _, used = bytes_of(fill)
    kept = f"{len(keys):,} sessions, {min(max_awake, len(keys)):,} of them awake"
    return f"{kept}: {used:,} bytes, {used / len(keys):,.0f} for each"


def waking(keys: list[PoolKey]) -> str:
    """CPU time of the part of a call that a parked session adds, without the decryption of the credential."""
    transport = VendorTransport(allow_private=True, limits=LIMITS, connections_per_origin=100)
    parked = [HandshakeSession(transport, None, _destination(key)) for key in keys]
    began_s = time.process_time()
    for session in parked:
        session.prepare()
    return f"a parked session is awake after {(time.process_time() - began_s) / len(parked) * 1e6:.0f} microseconds"


def _destination(key: PoolKey) -> Destination:
    headers = {"X-Api-Key": uuid.uuid4().hex}
    return Destination(key, lambda: (f"https://{key.vendor}.example/mcp", headers), secrets=headers.values)


def main() -> None:
    organizations = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    keys = [
        PoolKey.of(org_id, slug, uuid.uuid4(), f"https://{slug}.example/mcp", {"X-Api-Key": uuid.uuid4().hex})
        for org_id in (uuid.uuid4() for _ in range(organizations))
        for slug in VENDORS
    ]
    print(waking(keys[:3_000]))
    tracemalloc.start()
    for tools in (TOOLS, 1_200):
        print(one_list(tools))
    print(lists(keys))
    for max_awake in (len(keys), 1):
        print(sessions(keys, max_awake))


if __name__ == "__main__":
    main()

"""Our connection to vendors as a program: `vendor_connection.py URL` calls each tool of the server there once.

For suites that start a client and watch what it sends.
"""

import asyncio
import json
import sys

from proxy.protocol.replies import VendorResult
from proxy.vendors.http1 import Limits
from proxy.vendors.session import VendorSession
from proxy.vendors.transport import VendorTransport
from proxy.vendors.vendor_access import VendorAccess

DEADLINE_S = 30.0
LIMITS = Limits(connect_s=5.0, chunk_s=10.0, body_bytes=10 * 1024 * 1024)
ARGUMENTS = {"add_numbers": {"a": 5, "b": 3}}


async def ask(session: VendorSession, method: str, params: dict[str, object]) -> bytes:
    """The result, as JSON."""
    answer = await session.request(method, params, deadline=asyncio.get_running_loop().time() + DEADLINE_S)
    assert isinstance(answer, VendorResult), answer
    return answer.raw_result


async def main(url: str) -> None:
    transport = VendorTransport(allow_private=True, limits=LIMITS, connections_per_origin=10)
    session = VendorSession(transport, VendorAccess(url, {}))
    await session.initialize(deadline=asyncio.get_running_loop().time() + DEADLINE_S)
    for tool in json.loads(await ask(session, "tools/list", {}))["tools"]:
        await ask(session, "tools/call", {"name": tool["name"], "arguments": ARGUMENTS.get(tool["name"], {})})
    await session.close()
    await transport.aclose()


asyncio.run(main(sys.argv[1]))

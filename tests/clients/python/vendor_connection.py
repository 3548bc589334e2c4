"""Our connection to vendors as a program: `vendor_connection.py URL` calls each tool of the server there once.

For suites that start a client and watch what it sends.
"""

import asyncio
import json
import os
import sys
import time
from uuid import UUID

from proxy.protocol.modern.input_required import InputRequired
from proxy.protocol.replies import VendorResult
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.era_verdicts import EraVerdicts
from proxy.vendors.http1 import Limits
from proxy.vendors.opening import Opener
from proxy.vendors.rpc_request import RpcRequest
from proxy.vendors.session import VendorSession
from proxy.vendors.tool_request import ToolRequest
from proxy.vendors.transport import VendorTransport

DEADLINE_S = 30.0
LIMITS = Limits(connect_s=5.0, chunk_s=10.0, body_bytes=10 * 1024 * 1024)
CAN = {"elicitation": {}}
ARGUMENTS = {"add_numbers": {"a": 5, "b": 3}}


async def ask(session: VendorSession, method: str, params: dict[str, object], tool: ToolRequest | None = None) -> bytes:
    """The result, as JSON, once every question was answered; b"" for an error."""
    deadline = asyncio.get_running_loop().time() + DEADLINE_S
    answer = await session.request(RpcRequest(method, params, deadline, tool=tool))
    if isinstance(answer, InputRequired):
        responses = {key: {"action": "accept", "content": {"confirmed": True}} for key in answer.questions}
        state = {} if answer.state is None else {"requestState": answer.state}
        return await ask(session, method, {**params, "inputResponses": responses, **state}, tool)
    return answer.raw_result if isinstance(answer, VendorResult) else b""


def calls() -> list[tuple[str, dict[str, object]]]:
    """The calls that a scenario asks for; none where it leaves them to the client."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    return [(each["name"], each.get("arguments", {})) for each in context.get("toolCalls", [])]


async def main(url: str) -> None:
    transport = VendorTransport(allow_private=True, limits=LIMITS, connections_per_origin=10)
    key = PoolKey.of(UUID(int=1), "conformance", UUID(int=2), url, {})
    opener = Opener(transport, Destination(key, lambda: (url, {}), timeout_s=DEADLINE_S))
    verdicts = EraVerdicts(None, b"secret", max_verdicts=1, now_s=time.time)
    session = await opener.open(verdicts, deadline=asyncio.get_running_loop().time() + DEADLINE_S)
    listed = {tool["name"]: tool for tool in json.loads(await ask(session, "tools/list", {}))["tools"]}
    for name, arguments in calls() or [(name, ARGUMENTS.get(name, {})) for name in listed]:
        if name in listed:
            request = ToolRequest(json.dumps(listed[name]).encode(), CAN)
            await ask(session, "tools/call", {"name": name, "arguments": arguments}, request)
    await session.close()
    await transport.aclose()


asyncio.run(main(sys.argv[1]))

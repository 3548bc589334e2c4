"""One small vendor, written three times as its authors would: `echo_server.py FRAMEWORK PORT`.

FRAMEWORK is sdk_1 or sdk_2 (the Python SDK's two generations) or fastmcp; each runs with the Python it is installed in.
"""

import sys
import time
from typing import Any

DESCRIPTION = "Says the words again."
HOST = "127.0.0.1"


def echo(words: str) -> str:
    """The same words."""
    return words


def run_sdk_1(port: int) -> None:
    """The SDK's first generation."""
    from mcp.server.fastmcp import FastMCP

    server = FastMCP("sdk-1", host=HOST, port=port, log_level="WARNING")
    server.tool(description=DESCRIPTION)(echo)
    server.run(transport="streamable-http")


def run_sdk_2(port: int) -> None:
    """The SDK's second generation, with a tool that reports progress: when each report left is its message."""
    import anyio
    from mcp.server.mcpserver import Context, MCPServer

    server: MCPServer[Any] = MCPServer("sdk-2", version="1.0.0", log_level="WARNING")
    server.tool(description=DESCRIPTION)(echo)

    @server.tool(description="Reports progress while it runs.")
    async def report(steps: int, pause_s: float, context: Context[Any]) -> str:
        for step in range(1, steps + 1):
            await context.report_progress(step, steps, str(time.monotonic()))
            await anyio.sleep(pause_s)
        return "done"

    seen: set[tuple[str, int]] = set()
    news = anyio.Condition()

    @server.tool(description="Reports progress, each time after the report before was confirmed as seen.")
    async def report_in_step(run: str, steps: int, context: Context[Any]) -> str:
        for step in range(1, steps + 1):
            await context.report_progress(step, steps)
            async with news:
                while (run, step) not in seen:
                    await news.wait()
        return "done"

    @server.tool(description="Confirms that a report was seen.")
    async def confirm(run: str, step: int) -> str:
        async with news:
            seen.add((run, step))
            news.notify_all()
        return "noted"

    server.run(transport="streamable-http", host=HOST, port=port)


def run_fastmcp(port: int) -> None:
    """The framework that the SDK's first generation took over, as it went on."""
    from fastmcp import FastMCP

    server = FastMCP("fastmcp")
    server.tool(description=DESCRIPTION)(echo)
    server.run(transport="http", host=HOST, port=port, show_banner=False, log_level="WARNING")


if __name__ == "__main__":
    {"sdk_1": run_sdk_1, "sdk_2": run_sdk_2, "fastmcp": run_fastmcp}[sys.argv[1]](int(sys.argv[2]))

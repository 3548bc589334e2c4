"""Pure: how a call ended and by which route it came. The database, the filters and the pipeline use these words."""

from __future__ import annotations

from enum import StrEnum


class CallStatus(StrEnum):
    """How a call ended. `unknown`: the process died between dispatch and outcome. Spec: D80"""

    SUCCESS = "success"
    ERROR = "error"
    DENIED = "denied"
    UNKNOWN = "unknown"


class CallSource(StrEnum):
    """Which route a call came by. Spec: §6 · D137"""

    MCP = "mcp"
    CLI = "cli"

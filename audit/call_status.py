"""Pure: the status and source of a call, for the database, the filters and the pipeline."""

from enum import StrEnum


class CallStatus(StrEnum):
    """Spec: D80"""

    SUCCESS = "success"
    ERROR = "error"
    DENIED = "denied"
    UNKNOWN = "unknown"  # the process died between dispatch and outcome


class CallSource(StrEnum):
    """Spec: §6 · D137"""

    MCP = "mcp"
    CLI = "cli"


class CallKind(StrEnum):
    """The thing that a call asks a vendor for. docs/decisions/0104"""

    TOOL = "tool"
    RESOURCE = "resource"
    PROMPT = "prompt"
    COMPLETION = "completion"

"""Pure: the wire formats of MCP and the CLI, without framework or I/O.

`jsonrpc`, `versions`, `initialize`, `progress` speak to callers; `replies`, `lost_sessions`, `sse`, `secret_mask`
read vendors; `tool_names`, `tool_definitions`, `json_schema`, `flag_types`, `cli_*` turn vendors' tools into ours.
"""

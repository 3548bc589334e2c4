"""Pure: what travels on the wire, with no framework and no I/O.

jsonrpc            a caller's message taken apart; messages built as bytes
versions           the MCP versions we speak, and which one a request speaks
initialize         the answer to `initialize`
tool_names         a vendor's tool name, the names callers may use, and the way back
tool_definitions   a vendor's tool definitions, made fit for callers
json_schema        references, merging and plain roots of the schemas in definitions
flag_types         what one command line flag takes, told from a schema
cli_schema         definitions as commands and flags; dotted arguments folded back
cli_request        the body of a CLI call
sse                Server-Sent Events, read and written
replies            a vendor's message taken apart; results worded for the CLI
"""

"""The pipeline of a tool call, for every route: admit, decide, send, record. It is read from `call_tool`."""

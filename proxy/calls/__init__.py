"""One pipeline for every route: admit, decide, send, record. `call_tool` is the walk."""

"""The gateway as a client of vendors: HTTP transport, MCP sessions, their pool, and the tools each one offers."""

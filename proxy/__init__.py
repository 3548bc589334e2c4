"""The hot path: MCP and CLI calls from a bearer token to a vendor's answer, and the health of vendors."""

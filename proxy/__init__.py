"""The hot path of MCP and CLI calls from bearer token to vendor, and the control plane beside it."""

"""The management API of what only the proxy can ask: the vendors themselves."""

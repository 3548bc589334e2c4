"""Pure: MCP 2026-07-28, the revision without a handshake: each request says its version and capabilities in `_meta`.

Spec: MCP 2026-07-28, basic/index, basic/versioning, basic/transports/streamable-http · D159 · docs/decisions/0102
"""

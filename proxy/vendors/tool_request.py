"""Pure: what a request of `tools/call` needs beside its params, at a vendor of the modern revision."""

from __future__ import annotations

import msgspec


class ToolRequest(msgspec.Struct, frozen=True, gc=False):
    """`definition`: the tool's JSON, as the vendor listed it."""

    definition: bytes

"""Pure: what a request of `tools/call` needs beside its params, at a vendor of the modern revision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class ToolRequest(msgspec.Struct, frozen=True, gc=False):
    """`definition`: the tool's JSON, as the vendor listed it. `capabilities`: of a caller that can be asked.

    `is_retry`: it answers what a vendor of the modern revision asked.
    """

    definition: bytes
    capabilities: Mapping[str, Any] | None = None
    is_retry: bool = False

"""Pure: what a request needs beside its params, if its vendor may ask something in the middle of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from proxy.protocol.questions import Reply, VendorQuestion

Ask = Callable[[VendorQuestion], Awaitable[Reply | None]]


class ToolRequest(msgspec.Struct, frozen=True, gc=False):
    """`definition`: the tool's JSON, as the vendor listed it; empty for a prompt or a resource. `capabilities`: of a
    caller that can be asked.

    `is_retry`: it answers what a vendor of the modern revision asked. `ask`: asks the caller of an earlier revision in
    the middle of the call; None if it cannot be asked.
    """

    definition: bytes
    capabilities: Mapping[str, Any] | None = None
    is_retry: bool = False
    ask: Ask | None = None

"""A request to a vendor, and what sending it needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from proxy.progress_relay import ProgressRelay
from proxy.timing import Timing
from proxy.vendors.tool_request import ToolRequest


class _Asked(msgspec.Struct, frozen=True):
    # The other fields are named wherever a request is made: a value in the wrong place could send a write twice.
    method: str
    params: Mapping[str, Any]
    deadline: float


class RpcRequest(_Asked, frozen=True, kw_only=True):
    """`deadline`: in the event loop's time. With a `relay`, the vendor is asked for progress. `timing`: of the call.

    `tool`: of a request that the vendor may ask something about. `is_repeatable`: it changes nothing at the vendor, and
    is sent again on a mere sign of a lost session.
    """

    relay: ProgressRelay | None = None
    timing: Timing = msgspec.field(default_factory=Timing)
    tool: ToolRequest | None = None
    is_repeatable: bool = True

    def __repr__(self) -> str:
        return f"RpcRequest({self.method!r})"  # params are the caller's own data

    @property
    def name(self) -> str:
        """The tool or prompt that it names, or the method."""
        return str(self.params.get("name") or self.method)

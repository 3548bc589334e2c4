"""A request in the middle of which a vendor may ask: a call of a tool, or one for a prompt or a resource."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from credentials.resolve import CredentialRef
from gateway.catalog.vendor import Vendor
from proxy.caller import Caller
from proxy.outcomes import Delivered, Denied, VendorError
from proxy.protocol import jsonrpc
from proxy.protocol.modern import input_required
from proxy.protocol.modern.errors import MISSING_CAPABILITY
from proxy.protocol.questions import CAPABILITY_OF

CALL: Final = "tools/call"


class AskingRequest(msgspec.Struct, frozen=True):
    """`name`: the vendor's own, of the tool or the prompt, or the address of the resource. `arguments`: all that the
    caller gave beside it.

    `refused`: the last check of a caller's rights, after those of the vendor.
    """

    method: str
    name: str
    arguments: Mapping[str, Any]
    vendor: Vendor
    credential: CredentialRef
    refused: Callable[[Caller], Denied | None]

    def failed(self, text: str, lacking: list[str] | None = None) -> Delivered | VendorError:
        """The end of a request whose question has no answer. `lacking`: methods whose
        capability the caller has not declared.

        Only a tool's result can say that it failed, for a model to tell its user.
        """
        if self.method == CALL:
            return Delivered(input_required.failed_result(text), is_error=True)
        needed: dict[str, Any] = {CAPABILITY_OF[each]: {} for each in lacking or () if each in CAPABILITY_OF}
        error: dict[str, Any] = {"code": jsonrpc.INTERNAL_ERROR, "message": text}
        if needed:
            error = {"code": MISSING_CAPABILITY, "message": text, "data": {"requiredCapabilities": needed}}
        return VendorError(msgspec.json.encode(error), text)

"""Pure: adds to an answer what its vendor asked for in the middle of the call, and was refused. docs/decisions/0107"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from proxy.protocol.replies import RpcError, VendorResult

MEMBER: Final = "gateway/refused"
_MAX_METHODS: Final = 5
_METHOD_CHARACTERS: Final = 64
MAX_WORDED_BYTES: Final = 1024 * 1024  # a longer result has them in `_meta` alone: its blocks may be millions

_objects = msgspec.json.Decoder(dict[str, Raw])
_lists = msgspec.json.Decoder(list[Raw])
_encode = msgspec.json.Encoder().encode


def noted(refused: list[str], method: str) -> None:
    """Each method once; a vendor may ask without end."""
    if method not in refused and len(refused) < _MAX_METHODS:
        refused.append(method[:_METHOD_CHARACTERS])


def told(answer: VendorResult | RpcError, refused: Sequence[str]) -> VendorResult | RpcError:
    """The answer with the methods that were refused, in `_meta` and in words."""
    text = (
        f"The vendor asked for {', '.join(refused)} in the middle of this call. It was refused: the gateway can’t ask "
        "this client."
    )
    try:
        if isinstance(answer, RpcError):
            error: dict[str, Any] = _objects.decode(answer.raw_error)
            message = f"{answer.message} {text}"
            return RpcError(answer.id, answer.code, message, _encode({**error, "message": message}))
        members: dict[str, Any] = _objects.decode(answer.raw_result)
        # Results of prompts and resources have lists of their own.
        is_worded = len(answer.raw_result) <= MAX_WORDED_BYTES and members.keys().isdisjoint(("messages", "contents"))
        blocks: list[Any] = _lists.decode(members.get("content", b"[]")) if is_worded else []
        meta: dict[str, Any] = _objects.decode(members.get("_meta", b"{}"))
    except (msgspec.DecodeError, RecursionError):
        return answer  # the reader of the result finds the fault
    if is_worded:
        members["content"] = [*blocks, {"type": "text", "text": text}]
    members["_meta"] = {**meta, MEMBER: refused}
    # Another caller can perhaps be asked, and the organization may change its rule: not to be kept.
    return VendorResult(answer.id, _encode(members), answer.is_error, is_personal=True)

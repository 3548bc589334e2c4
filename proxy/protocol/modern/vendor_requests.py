"""Pure: requests of the gateway to a vendor that speaks the modern revision, and results of such a vendor.

Spec: MCP 2026-07-28, basic/index · docs/decisions/0106
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from proxy.protocol import replies
from proxy.protocol.modern.requests import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL
from proxy.protocol.modern.revision import PROTOCOL_VERSION, SERVED
from proxy.protocol.progress import ProgressToken

VERSION: Final = SERVED[0]
COMPLETE: Final = "complete"
_RESULT_TYPE: Final = "resultType"
# As the Python and the TypeScript SDK write it, first and last.
_FIRST: Final = b'{"resultType":"complete",'
_LAST: Final = b',"resultType":"complete"}'


class _Head(msgspec.Struct, rename="camel"):
    result_type: str | None = None


_heads = msgspec.json.Decoder(_Head)
_objects = msgspec.json.Decoder(dict[str, Raw])
_encode = msgspec.json.Encoder().encode


def with_meta(
    params: Mapping[str, Any],
    client_info: Mapping[str, str],
    *,
    token: ProgressToken | None = None,
    log_level: str | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """`params` with the members of `_meta` that each request has."""
    meta: dict[str, Any] = {
        **(params.get("_meta") or {}),
        PROTOCOL_VERSION: VERSION,
        CLIENT_CAPABILITIES: capabilities or {},
        CLIENT_INFO: client_info,
    }
    if token is not None:
        meta["progressToken"] = token
    if log_level is not None:
        meta[LOG_LEVEL] = log_level
    return {**params, "_meta": meta}


def result_type(raw_result: bytes) -> str | None:
    """None in a result of an earlier revision. Raises: BadVendorReply."""
    try:
        return _heads.decode(raw_result).result_type
    except (msgspec.DecodeError, RecursionError):
        raise replies.BadVendorReply("its result is malformed") from None


def without_type(raw_result: bytes) -> bytes:
    """A complete result as the earlier revisions have it; other members stay bytes."""
    if raw_result.startswith(_FIRST):
        return b"{" + raw_result[len(_FIRST) :]
    if raw_result.endswith(_LAST):
        return raw_result[: -len(_LAST)] + b"}"
    members = _objects.decode(raw_result)
    members.pop(_RESULT_TYPE, None)
    return _encode(members)

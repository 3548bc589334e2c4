"""Pure: progress tokens of callers, and a vendor's notifications about them with the caller's token put back."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw

from proxy.protocol import reserved_meta
from proxy.protocol.replies import VendorNotification

MAX_NOTIFICATION_BYTES: Final = 64 * 1024
METHOD: Final = "notifications/progress"
LOG_METHOD: Final = "notifications/message"

ProgressToken: TypeAlias = str | int

_MEMBER: Final = "progressToken"


class _Progress(msgspec.Struct, rename="camel"):
    progress_token: str | int
    progress: float
    total: float | None = None
    message: str | None = None


class _Head(msgspec.Struct):
    params: _Progress


class _Members(msgspec.Struct):
    params: dict[str, Raw]


_heads = msgspec.json.Decoder(_Head)
_members = msgspec.json.Decoder(_Members)
_encode = msgspec.json.Encoder().encode


def split_meta(meta: object) -> tuple[ProgressToken | None, dict[str, Any] | None]:
    """Return the token in a caller's `_meta`, and the rest that a vendor may see; None where there is none.

    The token is a string or an integer; anything else is as if it was not there. Reserved members describe the caller's
    own connection and stay here.

    Spec: protocol.md A.5 · D110
    """
    if type(meta) is not dict:
        return None, None
    rest = reserved_meta.without_reserved(meta)
    rest.pop(_MEMBER, None)
    token = meta.get(_MEMBER)
    return token if type(token) in (str, int) else None, rest or None  # `type`, because a bool is an int as well


def with_token(params: Mapping[str, Any], token: ProgressToken) -> dict[str, Any]:
    """Return the params of a request, with `token` in their `_meta`."""
    return {**params, "_meta": {**(params.get("_meta") or {}), _MEMBER: token}}


def relayed(notification: VendorNotification, sent: ProgressToken, asked: ProgressToken) -> bytes | None:
    """Return what the caller is to hear of a vendor's notification during its call; None for what is not about it.

    A log message goes on as it came: on the stream of a call it is about that call. Neither has reserved members in
    its `_meta`.   Spec: D110
    """
    if reserved_meta.mentions_meta(notification.raw) and len(notification.raw) <= MAX_NOTIFICATION_BYTES:
        notification = VendorNotification(notification.method, reserved_meta.cleaned_notification(notification.raw))
    if notification.method == METHOD:
        return restored(notification.raw, sent, asked)
    if notification.method == LOG_METHOD and len(notification.raw) <= MAX_NOTIFICATION_BYTES:
        return notification.raw
    return None


def restored(raw: bytes, sent: ProgressToken, asked: ProgressToken) -> bytes | None:
    """Return a vendor's progress notification about the token `sent`, about the caller's token `asked` instead.

    Only the params are taken over, and each of them as the bytes it came as. None for a notification about any other
    token, one that clients could not read, and one of more than 64 KiB.

    Spec: protocol.md A.5 · D110
    """
    if len(raw) > MAX_NOTIFICATION_BYTES:
        return None
    try:
        told = _heads.decode(raw).params.progress_token
        if type(told) is not type(sent) or told != sent:
            return None
        params = _members.decode(raw).params
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    params[_MEMBER] = Raw(_token_bytes(asked))
    message = b'{"jsonrpc":"2.0","method":"notifications/progress","params":%b}' % _encode(params)
    return message if len(message) <= MAX_NOTIFICATION_BYTES else None


def _token_bytes(token: ProgressToken) -> bytes:
    return b"%d" % token if isinstance(token, int) else _encode(token)  # integers have no upper bound here

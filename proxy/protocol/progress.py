"""Pure: progress tokens of callers, and vendors' notifications with the caller's token put back."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw

from gateway.lib.sentences import plain
from proxy.protocol import log_levels, reserved_meta
from proxy.protocol.replies import VendorNotification

MAX_NOTIFICATION_BYTES: Final = 64 * 1024  # larger ones are dropped
METHOD: Final = "notifications/progress"
LOG_METHOD: Final = "notifications/message"
LOWEST_LOG_LEVEL: Final = "debug"

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
_encode = msgspec.json.Encoder(enc_hook=plain).encode


def split_meta(meta: object) -> tuple[ProgressToken | None, dict[str, Any] | None]:
    """The progress token in a caller's `_meta` and the members that the vendor may see. Spec: protocol.md A.5 · D110"""
    if type(meta) is not dict:
        return None, None
    rest = reserved_meta.without_reserved(meta)  # they describe the caller's own connection
    rest.pop(_MEMBER, None)
    token = meta.get(_MEMBER)
    return token if type(token) in (str, int) else None, rest or None  # not isinstance: a bool is an int


def with_token(params: Mapping[str, Any], token: ProgressToken) -> dict[str, Any]:
    return {**params, "_meta": {**(params.get("_meta") or {}), _MEMBER: token}}


class Wanted(msgspec.Struct, frozen=True):
    """The notifications that a caller asked for. `token`: its own, None for no progress. `log_level`: the least severe
    level of log messages, None for none at all."""

    token: ProgressToken | None
    log_level: str | None = LOWEST_LOG_LEVEL


def relayed(notification: VendorNotification, vendor_token: ProgressToken, wanted: Wanted) -> bytes | None:
    """The bytes that a caller gets of a vendor's notification; None if it is not about its call, or not wanted. Spec:
    D110"""
    if reserved_meta.mentions_meta(notification.raw) and len(notification.raw) <= MAX_NOTIFICATION_BYTES:
        notification = VendorNotification(notification.method, reserved_meta.cleaned_notification(notification.raw))
    if notification.method == METHOD:
        return None if wanted.token is None else with_caller_token(notification.raw, vendor_token, wanted.token)
    if notification.method == LOG_METHOD and len(notification.raw) <= MAX_NOTIFICATION_BYTES:
        # A log message on the stream of a call is about that call.
        return notification.raw if _is_wanted(notification.raw, wanted.log_level) else None
    return None


def _is_wanted(raw: bytes, level: str | None) -> bool:
    return level == LOWEST_LOG_LEVEL or (level is not None and log_levels.reaches(raw, level))


def with_caller_token(raw: bytes, vendor_token: ProgressToken, caller_token: ProgressToken) -> bytes | None:
    """With token `caller_token` for `vendor_token`; None if too large, malformed or of another token. Spec: protocol.md
    A.5 · D110"""
    if len(raw) > MAX_NOTIFICATION_BYTES:
        return None
    try:
        reported = _heads.decode(raw).params.progress_token
        if type(reported) is not type(vendor_token) or reported != vendor_token:
            return None
        params = _members.decode(raw).params
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    # Other params keep their bytes.
    params[_MEMBER] = Raw(_token_bytes(caller_token))
    message = b'{"jsonrpc":"2.0","method":"notifications/progress","params":%b}' % _encode(params)
    return message if len(message) <= MAX_NOTIFICATION_BYTES else None


def _token_bytes(token: ProgressToken) -> bytes:
    return b"%d" % token if isinstance(token, int) else _encode(token)  # the encoder refuses integers beyond 64 bits

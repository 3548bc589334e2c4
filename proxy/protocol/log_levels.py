"""Pure: levels of log messages, the least severe first. Spec: MCP, server/utilities/logging (RFC 5424)"""

from types import MappingProxyType
from typing import Final

import msgspec

_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
RANKS: Final = MappingProxyType({level: rank for rank, level in enumerate(_LEVELS)})


class _Params(msgspec.Struct):
    level: str = ""


class _Head(msgspec.Struct):
    params: _Params


_heads = msgspec.json.Decoder(_Head)


def reaches(raw: bytes, level: str) -> bool:
    """Whether the log message `raw`, a notification, is at least as severe as `level`."""
    try:
        said = _heads.decode(raw).params.level
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return RANKS.get(said, -1) >= RANKS[level]

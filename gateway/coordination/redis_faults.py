"""Why Redis refused a command: the code, whether its connection may be kept, and a sentence for the log."""

from __future__ import annotations

import redis

from gateway.coordination.resp import ErrorReply, code_in

# After these the connection is closed: the server behind it is not, or not yet, the primary that the address names, or
# does not take us. The next connection follows the name, to the new primary after a failover.
ENDS_CONNECTION = frozenset(
    {"READONLY", "LOADING", "MASTERDOWN", "MISCONF", "OOM", "NOREPLICAS", "NOAUTH", "WRONGPASS", "NOPERM"}
)
_REASONS = {
    "READONLY": "REDIS_URL leads to a replica",
    "LOADING": "Redis is loading its data",
    "MASTERDOWN": "REDIS_URL leads to a replica that has lost its primary",
    "MISCONF": "Redis cannot save to its disk and refuses writes",
    "OOM": "Redis is out of memory and refuses writes",
    "NOREPLICAS": "Redis has too few replicas and refuses writes",
    "NOAUTH": "Redis wants a password and REDIS_URL has none",
    "WRONGPASS": "Redis does not accept the password in REDIS_URL",
    "NOPERM": "the Redis user in REDIS_URL lacks a permission",
    "CROSSSLOT": "REDIS_URL names a cluster; name a single primary",
    "MOVED": "REDIS_URL names a cluster; name a single primary",
    "ASK": "REDIS_URL names a cluster; name a single primary",
    "CLUSTERDOWN": "REDIS_URL names a cluster that is down; name a single primary",
}


def code_of(fault: Exception) -> str:
    """The code of a fault of either client; "" when it is no reply of the server."""
    if isinstance(fault, ErrorReply):
        return fault.code
    status = getattr(fault, "status_code", None)  # the general client has taken it off the text
    if status:
        return code_in(f"{status} {fault}")
    return code_in(str(fault)) if isinstance(fault, redis.exceptions.ResponseError) else ""


def ends_connection(fault: Exception) -> bool:
    """Whether the connection that brought this reply must not be used again."""
    return code_of(fault) in ENDS_CONNECTION


def described(fault: Exception) -> str:
    """For the log. The server's own text stays out: it may quote keys."""
    code = code_of(fault)
    if not code:
        return type(fault).__name__
    return f"{code}: {_REASONS[code]}" if code in _REASONS else code

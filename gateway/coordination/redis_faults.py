"""Error replies of Redis: their code, whether the connection stays usable, and the text for the log."""

from __future__ import annotations

import redis

from gateway.coordination.resp import ErrorReply, code_in

# The server is not the primary that the address names, cannot serve yet, or refuses this client. The connection is
# closed: the next one resolves the name again and reaches the new primary after a failover.
ENDS_CONNECTION = frozenset(
    {"READONLY", "LOADING", "MASTERDOWN", "MISCONF", "OOM", "NOREPLICAS", "NOAUTH", "WRONGPASS", "NOPERM"}
)
_ONE_NODE = "REDIS_URL leads to one node of a cluster: name an address that passes commands to all nodes"
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
    "CROSSSLOT": "REDIS_URL leads to a cluster: set REDIS_CLUSTER",
    "MOVED": _ONE_NODE,
    "ASK": _ONE_NODE,
    "CLUSTERDOWN": "REDIS_URL leads to a cluster that is down",
}


def code_of(fault: Exception) -> str:
    """The error code, from either Redis client; "" for a fault that is no reply."""
    if isinstance(fault, ErrorReply):
        return fault.code
    status = getattr(fault, "status_code", None)  # redis-py removes the code from the text
    if status:
        return code_in(f"{status} {fault}")
    return code_in(str(fault)) if isinstance(fault, redis.exceptions.ResponseError) else ""


def ends_connection(fault: Exception) -> bool:
    return code_of(fault) in ENDS_CONNECTION


def described(fault: Exception) -> str:
    code = code_of(fault)  # only the code: the server's own text may quote keys
    if not code:
        return type(fault).__name__
    return f"{code}: {_REASONS[code]}" if code in _REASONS else code

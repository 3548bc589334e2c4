"""Every figure that processes count. Contract: 7

A label is never a name of an organization, a person, a tool or a credential. Vendors are slugs of the catalog.
"""

from __future__ import annotations

from enum import StrEnum

from gateway.lib.metrics.figures import Counter, Gauge, Histogram, Merge

NO_VENDOR = "none"  # a call that names no vendor of the catalog
ROUTES = ("mcp", "vendor_mcp", "cli")
PHASES = ("auth", "session", "vendor", "audit", "total")
# The values of audit.shipping.platforms.registry, which no module of this floor imports.
PLATFORMS = (*(f"platform_{letter}" for letter in "abcdefg"), "webhook")
_CALL_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_COMMIT_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_WAIT_BOUNDS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class CallOutcome(StrEnum):
    SUCCESS = "success"
    ERROR = "error"
    DENIED = "denied"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"


CALLS = Counter(
    "gateway_calls_total",
    "Tool calls that ended.",
    ("vendor", "route", "outcome"),
    {"route": ROUTES, "outcome": tuple(CallOutcome)},
)
CALL_SECONDS = Histogram(
    "gateway_call_seconds", "Time of a tool call in each of its phases.", _CALL_BOUNDS, ("phase",), {"phase": PHASES}
)
AUDIT_COMMIT_SECONDS = Histogram(
    "gateway_audit_commit_seconds", "Time from a call record's arrival until it is durable.", _COMMIT_BOUNDS
)
CACHE = Counter(
    "gateway_cache_total",
    "Tool calls by the result cache's part in them.",
    ("result",),
    {"result": ("hit", "miss", "bypass")},
)
LIMITER = Counter(
    "gateway_limiter_total",
    "Tool calls that the limiter decided: by a count that all processes share, or by its own alone.",
    ("count", "result"),
    {"count": ("shared", "own"), "result": ("allowed", "refused")},
)
AUDIT_WAITING = Gauge("gateway_audit_waiting", "Call records that wait for a commit.", merge=Merge.SUM)
AUDIT_OUTAGE = Gauge("gateway_audit_outage", "1 while a process refuses calls because none could be recorded.")
DEGRADED = Gauge("gateway_degraded", "1 while a process counts limits by itself because Redis is away.")
CIRCUIT_OPEN = Gauge("gateway_circuit_open", "1 while a process sends a vendor's calls nowhere.", ("vendor",))
VENDOR_SESSIONS = Gauge("gateway_vendor_sessions", "Sessions with vendors.", merge=Merge.SUM)
VENDOR_CONNECTIONS = Gauge(
    "gateway_vendor_connections",
    "Connections to vendors.",
    ("state",),
    {"state": ("busy", "idle")},
    merge=Merge.SUM,
)
DATABASE_CONNECTIONS = Gauge(
    "gateway_database_connections",
    "Connections to PostgreSQL in a process's pools.",
    ("pool", "state"),
    {"pool": ("pages", "calls"), "state": ("busy", "idle")},
    merge=Merge.SUM,
)
DATABASE_WAITING = Gauge(
    "gateway_database_waiting",
    "Requests that wait for a connection to PostgreSQL.",
    ("pool",),
    {"pool": ("pages", "calls")},
    merge=Merge.SUM,
)
# Kept when its process ends: the next worker may be another one.
SCHEDULE_LAST_RUN = Gauge(
    "gateway_schedule_last_run_timestamp_seconds",
    "When a scheduled task last ended well, in seconds since 1970.",
    ("task",),
    is_live=False,
)
QUEUE_WAIT_SECONDS = Histogram(
    "gateway_queue_wait_seconds", "Time from a task's schedule until a worker takes it.", _WAIT_BOUNDS
)
SHIPPING_DELIVERED = Counter(
    "gateway_log_shipping_delivered_total",
    "Log records that a platform took or refused, or that were skipped; failed counts attempts.",
    ("platform", "outcome"),
    {"platform": PLATFORMS, "outcome": ("delivered", "refused", "skipped", "failed")},
)
PROCESSES = Gauge(
    "gateway_processes",
    "Processes that write figures.",
    ("role",),
    {"role": ("web", "worker", "shipping")},
    merge=Merge.SUM,
)

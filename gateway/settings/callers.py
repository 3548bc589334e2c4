"""Callers and organizations in the memory of a process.   docs/decisions/0050"""

from gateway.settings import env

# With Redis. Without it a bump may be lost with its process, and rows live for epochs.IN_FORCE_WITHIN_S.
CALLER_MAX_AGE_S = env.integer("CALLER_MAX_AGE", 900, low=10, high=3_600)
# Least recently used first out.
CACHED_CALLERS = env.integer("CACHED_CALLERS", 50_000, low=100, high=1_000_000)
CACHED_ORGANIZATIONS = env.integer("CACHED_ORGANIZATIONS", 10_000, low=10, high=1_000_000)

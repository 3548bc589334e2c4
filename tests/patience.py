"""Deadlines that a loaded machine would break, in every process of the suite."""

from __future__ import annotations

from gateway.coordination import redis_store


def widen_deadlines() -> None:
    """Give Redis time to answer: a late answer would send a call to the limits of its own process. Before any store."""
    redis_store.THREAD_TIMEOUT_S = 20.0
    redis_store.OPERATION_TIMEOUT_S = 5.0

"""Works that start at the same moment, each in a thread and with database connections of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import connections

from gateway.lib.errors import DomainError

T = TypeVar("T")
START_S = 60  # until the last thread is there
END_S = 120  # until a thread is through


def at_once(*works: Callable[[], T]) -> list[T | Exception]:
    """Results and exceptions of the works, in their order."""
    results: list[Any] = [None] * len(works)
    gate = threading.Barrier(len(works), timeout=START_S)

    def run(number: int) -> None:
        try:
            gate.wait()
            results[number] = works[number]()
        except Exception as fault:
            results[number] = fault
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(END_S)
    assert not any(thread.is_alive() for thread in threads)
    return results


def refusals_at_once(*works: Callable[[], object]) -> list[str]:
    """The sorted codes of the refusals, "" for a work that went through. Raises: what a work raised besides."""
    codes = []
    for result in at_once(*works):
        if isinstance(result, Exception) and not isinstance(result, DomainError):
            raise result
        codes.append(result.code if isinstance(result, DomainError) else "")
    return sorted(codes)

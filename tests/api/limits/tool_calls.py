"""The workers of the test of the hourly limit: each counts so many tool calls of one subject.

Arguments: subject, number of workers, calls of each. Prints how many calls of each worker were let in.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from functools import partial
from multiprocessing.synchronize import Barrier

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
all_ready: Barrier


def take_part(barrier: Barrier) -> None:
    """A new worker knows what it waits for."""
    global all_ready
    all_ready = barrier


def let_in(subject: str, calls: int) -> int:
    """As fast as it goes, when every worker is ready."""
    from django.conf import settings

    from gateway.coordination import backend

    all_ready.wait()
    answers = [backend.current().hit(settings.TOOL_CALLS, subject) for _ in range(calls)]
    assert all(answer.allowed or answer.retry_after_s > 0 for answer in answers)
    return sum(answer.allowed for answer in answers)


def main() -> None:
    """Load the service's code once, for all workers. Each opens a store of its own."""
    import django

    django.setup()
    from tests.patience import widen_deadlines

    widen_deadlines()
    subject, workers, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    forking = multiprocessing.get_context("fork")
    with forking.Pool(workers, take_part, [forking.Barrier(workers)]) as pool:
        sys.stdout.write(" ".join(map(str, pool.map(partial(let_in, subject), [calls] * workers, chunksize=1))))


if __name__ == "__main__":
    main()

"""One worker for the test of the hourly limit: counts so many tool calls of one subject, prints how many were let in.

Arguments: subject, how many.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")


def main() -> None:
    """Say ready, wait for the word, then as fast as it goes."""
    import django

    django.setup()
    from django.conf import settings

    from gateway.coordination import backend

    subject, how_many = sys.argv[1], int(sys.argv[2])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    answers = [backend.current().hit(settings.TOOL_CALLS, subject) for _ in range(how_many)]
    assert all(answer.allowed or answer.retry_after_s > 0 for answer in answers)
    sys.stdout.write(f"{sum(answer.allowed for answer in answers)}\n")


if __name__ == "__main__":
    main()

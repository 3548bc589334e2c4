"""`python -m bench.pages`: every page of a large organization, as owner, admin and member; time, statements, bytes.

The service runs inside this process, on a throw-away database (DATABASE_URL chooses the server, SQLite otherwise).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace


def rows_of(size_factor: float, times: int) -> Iterator[tuple[str, object]]:
    """(role, visit) for every page that the role may open. Django is ready."""
    from bench.page_figures import visits
    from bench.page_seed import CUSTOMER, seed
    from bench.page_walk import page_paths

    size = replace(CUSTOMER, calls=int(CUSTOMER.calls * size_factor))
    print(f"seeding {size}", file=sys.stderr, flush=True)
    seeded = seed(size)
    for role in ("owner", "admin", "member"):
        for visit in visits(seeded.cast.client(role), page_paths(seeded.things), times=times):
            yield role, visit


def main(arguments: Sequence[str]) -> int:
    """Print the table. The exit code says whether every page keeps every goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="visits of each page (20)")
    parser.add_argument("--calls", type=float, default=1.0, help="share of the 100,000 calls to seed (1.0)")
    options = parser.parse_args(arguments)
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    os.environ.setdefault("LOG_LEVEL", "ERROR")  # each refused page would be a line
    import django

    django.setup()
    from django.test.utils import override_settings, setup_databases, setup_test_environment, teardown_databases

    from bench.page_figures import BYTES_GOAL, QUERY_GOAL, TIME_GOAL_MS, Visit

    setup_test_environment(debug=False)
    databases = setup_databases(verbosity=0, interactive=False)
    beyond = 0
    try:
        # A page is opened more often in a minute than one person may.
        with override_settings(RATELIMIT_ENABLE=False):
            print("| Page | Role | p50 ms | p95 ms | Queries | HTML KB | First visit KB | Beyond |")
            print("|---|---|--:|--:|--:|--:|--:|---|")
            for role, visit in rows_of(options.calls, options.times):
                assert isinstance(visit, Visit)
                beyond += bool(visit.beyond)
                cells = (
                    f"/{visit.route}",
                    role,
                    f"{visit.median_ms:.0f}",
                    f"{visit.time_ms(0.95):.0f}",
                    visit.queries,
                    f"{visit.html / 1000:.0f}",
                    f"{visit.sent / 1000:.0f}",
                    ", ".join(visit.beyond),
                )
                print("|", " | ".join(map(str, cells)), "|", flush=True)
    finally:
        teardown_databases(databases, verbosity=0)
    print(f"\nGoals: {TIME_GOAL_MS} ms at p95, {QUERY_GOAL} queries, {BYTES_GOAL // 1000} KB. Beyond one: {beyond}.")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

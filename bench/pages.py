"""`python -m bench.pages`: every page of a large organization, as owner, admin and member; time, statements, bytes.

The service runs inside this process, on a throw-away database (DATABASE_URL chooses the server, SQLite otherwise).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.page_figures import Visit

ROLES = ("owner", "admin", "member")
HEADINGS = "| Page | Role | p50 ms | p95 ms | CPU ms | Queries | HTML KB | First visit KB | Beyond |"


def visits_of(size_factor: float, times: int, match: str) -> Iterator[tuple[str, Visit]]:
    """(role, visit) for every page that the role may open. Django is ready."""
    from bench.page_figures import visits
    from bench.page_seed import CUSTOMER, seed
    from bench.page_walk import page_paths
    from proxy.runtime import exclude_loaded_objects

    size = replace(CUSTOMER, calls=int(CUSTOMER.calls * size_factor))
    print(f"seeding {size}", file=sys.stderr, flush=True)
    seeded = seed(size)
    _settle()
    exclude_loaded_objects()
    paths = {route: path for route, path in page_paths(seeded.things).items() if match in route}
    for role in ROLES:
        for visit in visits(seeded.cast.client(role), paths, times=times):
            yield role, visit


def _settle() -> None:
    """Does what autovacuum does within a minute: statistics for the planner, and pages that an index alone answers."""
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def main(arguments: Sequence[str]) -> int:
    """Prints the table, and the pages that miss a goal. 1: one of them misses that of statements or of bytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="visits of each page (20)")
    parser.add_argument("--calls", type=float, default=1.0, help="share of the 100,000 calls to seed (1.0)")
    parser.add_argument("--match", default="", help="only routes with this text, such as activity")
    options = parser.parse_args(arguments)
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    os.environ.setdefault("LOG_LEVEL", "ERROR")  # each refused page would be a line
    os.environ["REQUESTS_PER_MINUTE"] = "10000000"  # a page is opened more often in a minute than one person may
    import django

    django.setup()
    from django.test.utils import override_settings, setup_databases, setup_test_environment, teardown_databases

    setup_test_environment(debug=False)
    databases = setup_databases(verbosity=0, interactive=False)
    seen: list[tuple[str, Visit]] = []
    try:
        with override_settings(RATELIMIT_ENABLE=False):
            print(f"{HEADINGS}\n|---|---|--:|--:|--:|--:|--:|--:|---|")
            for role, visit in visits_of(options.calls, options.times, options.match):
                seen.append((role, visit))
                print(_line(role, visit), flush=True)
    finally:
        teardown_databases(databases, verbosity=0)
    print("\n".join(summary(seen)))
    return int(any(visit.fails for _, visit in seen))


def _line(role: str, visit: Visit) -> str:
    times = (visit.median_ms, visit.time_ms(0.95), visit.cpu_ms) if visit.times_ms else (0, 0, 0)
    figures = [*(f"{each:.0f}" for each in times), str(visit.queries)]
    sizes = [f"{visit.html / 1000:.0f}", f"{visit.sent / 1000:.0f}"]
    return f"| {' | '.join([f'/{visit.route}', role, *figures, *sizes, ', '.join(visit.beyond)])} |"


def summary(seen: Sequence[tuple[str, Visit]]) -> list[str]:
    """The goals, how busy the machine was, and each page that misses one."""
    from bench.page_figures import BYTES_GOAL, QUERY_GOAL, TIME_GOAL_MS

    beyond = [f"  {', '.join(visit.beyond)}: /{visit.route} as {role}" for role, visit in seen if visit.beyond]
    busy = " ".join(f"{each:.1f}" for each in os.getloadavg())
    return [
        f"\nGoals: {TIME_GOAL_MS} ms at p95, {QUERY_GOAL} queries, {BYTES_GOAL // 1000} KB.",
        f"Load of the machine in the last 1, 5 and 15 minutes: {busy}; processors: {os.cpu_count()}.",
        f"Beyond a goal: {len(beyond)} of {len(seen)}.",
        *beyond,
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

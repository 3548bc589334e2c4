"""Tests of a parallel run that go to the same process: those of one file, and those that share a server."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from tests.vendors.processes import ROOT

# Fixtures of the whole session that take seconds to start, and their types. Each process would start its own.
SHARED_SERVERS = {"sign_in_gateway": "SignInGateway", "gateway": "Gateway"}
# Shared servers and files that take longest on production's back ends, in order. Others follow, by their tests' number.
LONGEST_FIRST = (
    "tests/e2e/test_billing_life.py",
    "gateway",
    "tests/faults/test_redis_hangs.py",
    "tests/e2e/test_secret_hygiene.py",
    "tests/e2e/test_make_run.py",
    "sign_in_gateway",
    "tests/faults/test_database_silent.py",
    "tests/e2e/test_tests_of_stripe_mode.py",
    "tests/faults/test_shipping_killed.py",
    "tests/faults/test_upgraded_log.py",
    "tests/e2e/test_crowds.py",
    "tests/faults/test_gateway_durability.py",
    "tests/faults/test_followed_stream.py",
    "tests/e2e/test_stripe_mode.py",
    "tests/e2e/test_real_collector.py",
    "tests/faults/test_rate_limited_calls.py",
    "tests/faults/test_audit_engines.py",
)


class SharedServerScheduling(LoadFileScheduling):
    """`--dist loadfile`, with all files that use the same shared server as if they were one, the longest first.

    A long file that began last would be run by one process while the others have nothing left to do.
    """

    def _split_scope(self, nodeid: str) -> str:
        return server_of(super()._split_scope(nodeid))

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(longest(self.workqueue), last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        """A process takes more before its last test, which it begins when it knows what follows, and no sooner.

        The usual way is one test earlier: the last two of a file may take half a minute, and what was taken waits.
        """
        has_enough = self._pending_of(self.assigned_work[node]) > 1
        if node.shutting_down or not self.workqueue or not has_enough:
            super()._reschedule(node)


def longest(scopes: Iterable[str]) -> str:
    """The first of LONGEST_FIRST among the scopes, or simply the first of them."""
    return min(scopes, key=lambda scope: LONGEST_FIRST.index(scope) if scope in LONGEST_FIRST else len(LONGEST_FIRST))


@cache
def server_of(path: str) -> str:
    """The shared server that functions of a file have as an argument; the file itself if there is none."""
    text = (ROOT / path).read_text()
    found = (name for name, kind in SHARED_SERVERS.items() if re.search(rf"\b{name}: {kind}[,)]", text))
    return next(found, path)

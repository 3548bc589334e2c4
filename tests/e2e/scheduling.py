"""Tests of a parallel run that go to the same process: those of one file, and those that share a server."""

from __future__ import annotations

import re
from functools import cache

from xdist.scheduler import LoadFileScheduling

from tests.vendors.processes import ROOT

# Fixtures of the whole session that take seconds to start, and their types. Each process would start its own.
SHARED_SERVERS = {"sign_in_gateway": "SignInGateway", "gateway": "Gateway"}


class SharedServerScheduling(LoadFileScheduling):
    """`--dist loadfile`, with all files that use the same shared server as if they were one."""

    def _split_scope(self, nodeid: str) -> str:
        return server_of(super()._split_scope(nodeid))


@cache
def server_of(path: str) -> str:
    """The shared server that functions of a file have as an argument; the file itself if there is none."""
    text = (ROOT / path).read_text()
    found = (name for name, kind in SHARED_SERVERS.items() if re.search(rf"\b{name}: {kind}[,)]", text))
    return next(found, path)

"""Workers of row 55: each a process with a gateway of its own on the test's database and store.

Arguments: database name, agent key, token, limit, number of workers, calls of each. Prints how often each status came.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections import Counter
from multiprocessing.synchronize import Barrier

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
all_ready: Barrier


def take_part(barrier: Barrier) -> None:
    """A new worker knows what it waits for."""
    global all_ready
    all_ready = barrier


def call(asked: tuple[str, str, int]) -> dict[int, int]:
    """How often each status came, on the three routes in turn."""
    from tests.attacks.wire import Sent, Wire

    key, token, calls = asked
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fake_list", "arguments": {}}}
    routes = (("/v1/mcp", key, message), ("/v1/fake/mcp", token, message), ("/v1/fake/cli", token, {"tool": "list"}))
    wire = Wire()
    all_ready.wait(60)
    sent = []
    for number in range(calls):
        path, bearer, body = routes[number % len(routes)]
        body = {**body, "args": {"site": f"{os.getpid()} {number}"}} if path.endswith("cli") else body
        headers = [("host", "testserver"), ("content-type", "application/json"), ("accept", "*/*")]
        headers.append(("authorization", f"Bearer {bearer}"))
        sent.append(Sent("POST", path, headers, json.dumps(body).encode()))
    answers = wire.at_once(*sent)
    wire.close()
    return dict(Counter(answer.status_code for answer in answers))


def main() -> None:
    """Load the service's code once, for all workers."""
    import django

    django.setup()
    from django.conf import settings
    from django.db import connection

    from gateway.coordination.rules import Rule
    from tests.patience import widen_deadlines

    widen_deadlines()
    name, key, token = sys.argv[1:4]
    limit, workers, calls = map(int, sys.argv[4:])
    settings.DATABASES["default"]["NAME"] = name
    connection.settings_dict["NAME"] = name
    settings.ALLOWED_HOSTS = ["testserver"]
    settings.TOOL_CALLS = Rule("attack 55", limit=limit, window_s=3600)
    forking = multiprocessing.get_context("fork")
    with forking.Pool(workers, take_part, [forking.Barrier(workers)]) as pool:
        found = pool.map(call, [(key, token, calls)] * workers, chunksize=1)
    total: Counter[int] = Counter()
    for each in found:
        total.update(each)
    sys.stdout.write(json.dumps(total))


if __name__ == "__main__":
    main()

"""CPU time of the pure modules in one call: the most that a compiled build of them could save.

    python -m bench.pure_parts          # two seconds

Prints the CPU time of each step in microseconds, the smallest of several runs, for a call with 1 KB of result. Compare
their sum with the CPU time of a call in `make bench`. Decoding and encoding JSON is C already, and is part of it.
"""

from __future__ import annotations

import json
import timeit
import uuid
from collections.abc import Callable, Mapping
from time import process_time

from audit.call_record import CallRecord
from audit.call_status import CallSource, CallStatus
from gateway.lib import clock, ids, strict_json
from proxy.protocol import jsonrpc, replies
from proxy.protocol.modern import revision
from proxy.protocol.secret_mask import SecretMask
from proxy.timing import Timing

RUNS, TIMES = 12, 1_500
PARAMS = {"name": "list_devices", "arguments": {"site": "site-01"}}
BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": PARAMS}).encode()
RESULT = {"content": [{"type": "text", "text": "x" * 1_000}], "isError": False}
REPLY = json.dumps({"jsonrpc": "2.0", "id": 17, "result": RESULT}).encode()
ORGANIZATION = uuid.UUID(int=1)


def steps() -> Mapping[str, Callable[[], object]]:
    document = strict_json.loads(BODY)
    message = jsonrpc.parse_message(document)
    raw_result = json.dumps(RESULT).encode()
    mask = SecretMask(["correct-horse-battery"])
    return {
        "read the body as strict JSON": lambda: strict_json.loads(BODY),
        "take the message apart": lambda: jsonrpc.parse_message(document),
        "tell its revision": lambda: revision.is_modern(message, None),
        "write the vendor's request": lambda: jsonrpc.request(17, "tools/call", PARAMS),
        "look for the credential in the reply": lambda: mask.masked(REPLY),
        "take the reply apart": lambda: replies.parse_message(REPLY),
        "write the answer": lambda: jsonrpc.result_bytes(1, raw_result),
        "six timed phases and their headers": _timing,
        "the audit record": _record,
    }


def _timing() -> object:
    timing = Timing()
    for phase in (timing.auth, timing.auth, timing.auth, timing.session, timing.session, timing.vendor):
        with phase:
            pass
    return timing.headers()


def _record() -> object:
    now = clock.now()
    return CallRecord(
        id=ids.log_id_for(now),
        timestamp=now,
        org_id=ORGANIZATION,
        user_id="client:one",
        user_label="a bot",
        vendor="bench",
        tool="list_devices",
        source=CallSource.MCP,
        status=CallStatus.SUCCESS,
        duration_ms=3,
        vendor_ms=1,
        credential_scope="organization",
        client_id="one",
        client_name="a bot",
        ip_address="127.0.0.1",
        request_id="0123456789abcdef0123456789abcdef",
        request_bytes=len(BODY),
        response_bytes=len(REPLY),
    )


def cost_us(step: Callable[[], object]) -> float:
    """Microseconds of CPU time."""
    return 1e6 * min(timeit.repeat(step, number=TIMES, repeat=RUNS, timer=process_time)) / TIMES


def main() -> None:
    found = {name: cost_us(step) for name, step in steps().items()}
    for name, cost in found.items():
        print(f"{cost:6.2f} us  {name}")
    print(f"{sum(found.values()):6.2f} us  together")


if __name__ == "__main__":
    main()

"""Guard process that ends the process groups of a supervisor that was killed.

It reads `+<group>` and `-<group>` lines from standard input, which closes when the supervisor dies in any way. The
groups left then get SIGTERM, and SIGKILL after GRACE_S. Run with `python -I -S` for a fast start.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable

GRACE_S = 2.0
POLL_S = 0.05


def remaining_groups(lines: Iterable[str]) -> list[int]:
    """Pure: groups added and not removed, in the order of adding."""
    groups: dict[int, None] = {}
    for line in lines:
        number = int(line[1:])
        if line.startswith("+"):
            groups[number] = None
        else:
            groups.pop(number, None)
    return list(groups)


def is_alive(group: int) -> bool:
    # Signal 0 only checks whether any process of the group exists.
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def send(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def end_groups(groups: list[int]) -> None:
    for group in reversed(groups):
        send(group, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline and any(is_alive(group) for group in groups):
        time.sleep(POLL_S)
    for group in groups:
        send(group, signal.SIGKILL)


def main() -> None:
    # The terminal sends Ctrl-C to the guard too; it must outlive the supervisor.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # A line cut off by a kill is dropped; the lines before it count.
    end_groups(remaining_groups(line for line in sys.stdin if line.endswith("\n")))


if __name__ == "__main__":
    main()

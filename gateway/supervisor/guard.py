"""Ends the process groups of a supervisor that was killed: a program of its own, told over standard input.

Lines are `+<group>` and `-<group>`. Standard input ends when the supervisor does, however it does; the groups that are
left then are asked to stop, and killed when they do not. Run with `python -I -S`, so it starts at once.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable

GRACE_S = 2.0
POLL_S = 0.05


def remaining_groups(lines: Iterable[str]) -> list[int]:
    """Pure: the groups that were added and not removed, in the order of adding."""
    groups: dict[int, None] = {}
    for line in lines:
        number = int(line[1:])
        if line.startswith("+"):
            groups[number] = None
        else:
            groups.pop(number, None)
    return list(groups)


def is_alive(group: int) -> bool:
    """Whether any process of the group exists."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def send(group: int, number: signal.Signals) -> None:
    """Send a signal to a group that may be gone."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def end_groups(groups: list[int]) -> None:
    """No process of the groups is left."""
    for group in reversed(groups):
        send(group, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline and any(is_alive(group) for group in groups):
        time.sleep(POLL_S)
    for group in groups:
        send(group, signal.SIGKILL)


def main() -> None:
    """Wait for the supervisor's end and clear up what it could not."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Line by line: read-ahead would not matter, but a line cut by a kill must not lose those before it.
    end_groups(remaining_groups(line for line in sys.stdin if line.endswith("\n")))


if __name__ == "__main__":
    main()

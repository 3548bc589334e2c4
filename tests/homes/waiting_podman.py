"""podman for podman-compose where it cannot wait for health: before 4.6, and where no systemd runs the health checks.

It stands before podman in PATH, says that it is 4.6, and does what `wait --condition=healthy` would: it runs the health
check of each container until it succeeds. It leaves `--requires` out, which Docker does not know and with which such
podmans start no container after one that has ended. Everything else goes to podman.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

CONDITION = "--condition=healthy"
DEADLINE_S = 180.0
PAUSE_S = 1.0


def is_healthy(podman: str, container: str) -> bool:
    """Also a container without a check."""
    ran = subprocess.run([podman, "healthcheck", "run", container], capture_output=True, text=True, check=False)
    return ran.returncode == 0 or "has no defined healthcheck" in ran.stderr


def main(podman: str, arguments: list[str]) -> int:
    if arguments[:1] == ["--version"]:
        sys.stdout.write("podman version 4.6.0\n")
        return 0
    if arguments[:1] != ["wait"] or CONDITION not in arguments:
        kept = [each for each in arguments if not each.startswith("--requires=")]
        return os.execv(podman, [podman, *kept])
    deadline = time.monotonic() + DEADLINE_S
    for container in (each for each in arguments[1:] if not each.startswith("-")):
        while not is_healthy(podman, container):
            if time.monotonic() > deadline:
                sys.stderr.write(f"{container} does not become healthy\n")
                return 1
            time.sleep(PAUSE_S)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

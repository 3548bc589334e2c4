"""Becomes another program that dies with the process which started it: `python tether.py PARENT_PID PROGRAM [ARG ...]`.

A test run that is killed gets no chance to stop its servers; the kernel does it then. Only Linux knows this tie.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent_pid: int, command: list[str]) -> None:
    """Never returns. The tie is to the parent's thread that started this process; keep that the main one."""
    if sys.platform == "linux":
        if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
        if os.getppid() != parent_pid:
            sys.exit("the parent was gone before the tie held")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])

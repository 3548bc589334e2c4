"""A long run measures the memory that is in use: its threads leave no heaps of their own behind."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from tests.vendors.processes import ROOT

pytestmark = pytest.mark.one_back_end
# A process of its own: how many heaps there are is settled by the threads that it has had.
PROGRAM = """
import ctypes, sys, threading
from tests.fuzz.memory import use_one_arena

if sys.argv[1] == "one":
    use_one_arena()
together = threading.Barrier(4)

def work():
    kept = bytearray(100_000)
    together.wait()

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


def heaps(folder: Path, which: str) -> int:
    report = folder / which
    subprocess.run([sys.executable, "-c", PROGRAM, which, str(report)], cwd=ROOT, check=True, timeout=60)
    return report.read_text().count("<heap nr=")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="the allocator of glibc is meant")
def test_threads_share_the_heap_of_the_process_in_a_long_run(tmp_path: Path) -> None:
    assert heaps(tmp_path, "one") == 1
    assert heaps(tmp_path, "each its own") > 1

"""uvicorn with a hook for the bench: at SIGUSR2 the process says what its garbage collector finds.

`BENCH_COLLECTOR_FILE=FILE python -m bench.wide.observed_server …`: the arguments are uvicorn's. The answer takes the
place of the file. A call costs nothing more than under uvicorn itself.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from pathlib import Path

VARIABLE = "BENCH_COLLECTOR_FILE"


def answer(file: Path, number: int) -> None:
    """After a full collection. `freed`: unreachable objects of all collections so far, this one included."""
    gc.collect()
    freed = sum(each["collected"] for each in gc.get_stats())
    said = {"number": number, "freed": freed, "tracked": len(gc.get_objects())}
    part = file.with_suffix(".part")
    part.write_text(json.dumps(said), encoding="utf-8")
    part.replace(file)


def install(file: Path) -> None:
    numbers = iter(range(1, sys.maxsize))
    signal.signal(signal.SIGUSR2, lambda *_: answer(file, next(numbers)))


def main() -> None:
    import uvicorn

    install(Path(os.environ[VARIABLE]))
    uvicorn.main()


if __name__ == "__main__":
    main()

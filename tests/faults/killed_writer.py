"""A program that keeps call records until it is killed: `python -m tests.faults.killed_writer WRITERS [KEPT]`.

Each writer keeps an intent and then its outcome. Standard output gets "begin ID" before the intent and "kept ID" once
the outcome is kept. With KEPT the program kills itself at that moment of that record: after its write, before any
answer.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys

os.environ["DJANGO_SETTINGS_MODULE"] = "gateway.settings"

from msgspec.structs import replace

from audit.writer import AuditWriter
from tests.faults.audit_engine import new_record, open_in_program


def say(word: str, record_id: object) -> None:
    # One system call: a kill leaves whole lines only.
    os.write(1, f"{word} {record_id}\n".encode())


async def write_for_ever(writer: AuditWriter, numbers: itertools.count[int], last: int) -> None:
    while True:
        ended = new_record()
        say("begin", ended.id)
        await writer.write(replace(ended, status="unknown"))
        await writer.write(ended)
        say("kept", ended.id)
        if next(numbers) == last:
            os.kill(os.getpid(), signal.SIGKILL)


async def main(writers: int, last: int) -> None:
    writer, numbers = AuditWriter(open_connection=open_in_program), itertools.count(1)
    await asyncio.gather(*(write_for_ever(writer, numbers, last) for _ in range(writers)))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))

"""Runs checks one after the other, each within its deadline; a broken check is a verdict and stops no other."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence

import structlog
from django.db import connections

from gateway.doctor.verdict import Check, Finding, Status, Verdict, error

log = structlog.get_logger(__name__)
DEADLINE_S = 15.0


def run(checks: Sequence[Check], *, deadline_s: float = DEADLINE_S) -> Iterator[Verdict]:
    failed: set[str] = set()
    for check in checks:
        if check.needs in failed:
            failed.add(check.name)
            continue
        for found in _findings(check, deadline_s):
            if found.status is Status.ERROR:
                failed.add(check.name)
            yield Verdict(check.name, found.status, found.message)


def _findings(check: Check, deadline_s: float) -> Sequence[Finding]:
    answers: queue.SimpleQueue[Sequence[Finding]] = queue.SimpleQueue()
    # A daemon: a check that hangs in a system call does not keep the command from ending.
    threading.Thread(target=_work, args=(check, answers), name=f"doctor-{check.name}", daemon=True).start()
    try:
        return answers.get(timeout=deadline_s)
    except queue.Empty:
        return [error(f"The check gave no answer within {deadline_s:g} s.")]


def _work(check: Check, answers: queue.SimpleQueue[Sequence[Finding]]) -> None:
    try:
        answers.put(check.find())
    except Exception as fault:
        # The text of a fault may hold an address with a password: the log masks it.
        log.error("doctor_check_failed", check=check.name, exc_info=True)
        answers.put([error(f"The check itself failed: {type(fault).__name__}. The log has more.")])
    finally:
        connections.close_all()

"""Verdicts of the doctor: one finding, one sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """`message`: a sentence without secrets, with the remedy where there is one."""

    status: Status
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    check: str
    status: Status
    message: str


@dataclass(frozen=True, slots=True)
class Check:
    """`needs`: the check whose errors make this one pointless."""

    name: str
    find: Callable[[], Sequence[Finding]]
    needs: str = ""


def ok(message: str) -> Finding:
    return Finding(Status.OK, message)


def warning(message: str) -> Finding:
    return Finding(Status.WARNING, message)


def error(message: str) -> Finding:
    return Finding(Status.ERROR, message)

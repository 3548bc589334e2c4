"""The rows of the fault matrix, in the order in which their modules enter them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.faults.matrix_stage import Stage


@dataclass(frozen=True)
class Row:
    """`expected`: what the matrix says, for the report."""

    name: str
    expected: str
    play: Callable[[Stage], None]
    is_long: bool = False


ROWS: list[Row] = []


def row(name: str, expected: str, *, is_long: bool = False) -> Callable[[Callable[[Stage], None]], None]:
    """Enter a function into the table. A long one starts servers besides, and is left out of short runs."""

    def enter(play: Callable[[Stage], None]) -> None:
        ROWS.append(Row(name, expected, play, is_long))

    return enter

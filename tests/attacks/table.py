"""The table of attacks: numbers, their cases, and the function that tries each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.attacks.world import World

ROWS = 60


@dataclass(frozen=True)
class Case:
    """One way to try the attack of a row."""

    number: int
    name: str
    attempt: Callable[[World], None]

    def __str__(self) -> str:
        return f"{self.number:02} {self.name}"


CASES: list[Case] = []


def attack(
    number: int, cases: Mapping[str, Any] | Iterable[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Enter the function into the table: once, or once for each case, whose value is its second argument."""

    def enter(function: Callable[..., None]) -> Callable[..., None]:
        title = function.__name__.replace("_", " ")
        named = dict(cases) if isinstance(cases, Mapping) else {each: each for each in cases}
        for name, value in named.items():
            CASES.append(Case(number, f"{title}: {name}", partial(_with, function, value)))
        if not named:
            CASES.append(Case(number, title, function))
        return function

    return enter


def _with(function: Callable[..., None], value: Any, world: World) -> None:
    function(world, value)

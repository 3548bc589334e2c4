"""Requests of many callers in turn: pure, with one file that the load generator reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec


class Template(msgspec.Struct, frozen=True):
    """A request without its bearer, which belongs between `head` and `tail`, and the mark of its answer."""

    head: bytes
    tail: bytes
    mark: bytes


class Turn(msgspec.Struct, frozen=True, array_like=True):
    """One call: numbers of a bearer and of a template."""

    bearer: int
    template: int


class TurnBook(msgspec.Struct, frozen=True):
    """Callers, their requests, and the order of the calls."""

    bearers: list[bytes] = msgspec.field()
    templates: list[Template]
    turns: list[Turn]

    def requests(self, first: int, count: int) -> Iterator[tuple[bytes, bytes]]:
        """(request, mark) of `count` turns from number `first` on, round and round; without end if `count` is 0."""
        number, left = first, count
        while True:
            turn = self.turns[number % len(self.turns)]
            template = self.templates[turn.template]
            yield template.head + self.bearers[turn.bearer] + template.tail, template.mark
            number, left = number + 1, left - 1
            if not left:
                return

    def __repr__(self) -> str:
        return f"TurnBook({len(self.bearers)} bearers, {len(self.turns)} turns)"


def write_book(book: TurnBook, file: Path) -> None:
    file.write_bytes(msgspec.msgpack.encode(book))


def read_book(file: Path) -> TurnBook:
    """Raises: OSError; msgspec.DecodeError."""
    return msgspec.msgpack.decode(file.read_bytes(), type=TurnBook)


def callers_in_turn(organizations: int, callers: int, vendors: int) -> list[tuple[int, int]]:
    """(caller, vendor) of every call of one cycle, caller `k` of organization `o` being number `o * callers + k`.

    Neighbours are of different organizations. Each caller calls once in a pass, and in each pass another vendor.
    """
    return [
        (organization * callers + caller, (caller + turn) % vendors)
        for turn in range(vendors)
        for caller in range(callers)
        for organization in range(organizations)
    ]


def warm_up_turns(organizations: int, callers: int, vendors: int) -> int:
    """So many turns from the first on reach every caller, and every vendor of every organization."""
    return organizations * callers * (1 if callers >= vendors else vendors)


def turns_of(calls: Sequence[tuple[int, int]], marks: int) -> list[Turn]:
    """The turns of (caller, vendor); template `vendor * marks + mark`, and neighbours expect other marks."""
    return [Turn(caller, vendor * marks + number % marks) for number, (caller, vendor) in enumerate(calls)]

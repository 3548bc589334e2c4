"""SELECTs that answer with one JSON text, in the spellings of PostgreSQL and SQLite.

One column of one row costs a driver next to nothing, however much is nested in it. Both databases give the same text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from django.db import connection


@dataclass(frozen=True, slots=True)
class Dialect:
    is_postgresql: bool

    def array(self, *columns: str) -> str:
        return f"{'json_build_array' if self.is_postgresql else 'json_array'}({', '.join(columns)})"

    def values(self, select: str) -> str:
        """An array of the column `item` of `select`, in its order."""
        if self.is_postgresql:
            return f"array_to_json(ARRAY({select}))"
        # An aggregate keeps the order of its subquery: SQLite flattens no ordered one into it.
        return f"json((SELECT json_group_array(item) FROM ({select})))"  # noqa: S608

    def rows(self, select: str) -> str:
        """As `values`, where `item` is itself an array."""
        if self.is_postgresql:
            return f"array_to_json(ARRAY({select}))"
        return f"json((SELECT json_group_array(json(item)) FROM ({select})))"  # noqa: S608

    def hexadecimal(self, column: str) -> str:
        return f"encode({column}, 'hex')" if self.is_postgresql else f"hex({column})"

    def uuid(self, parameter: str) -> str:
        # SQLite stores 32 hexadecimal digits.
        return f"{parameter}::uuid" if self.is_postgresql else f"replace({parameter}, '-', '')"

    def text(self, array: str) -> str:
        return f"{array}::text" if self.is_postgresql else array

    def nested(self, column: str) -> str:
        """A JSON value as a part of an array, not as a text in it."""
        return column if self.is_postgresql else f"json({column})"


class JsonStatement:
    """A statement with one parameter, `%s` in its text; `write` gives the text for a dialect."""

    def __init__(self, name: str, write: Callable[[Dialect], str]) -> None:
        postgresql = write(Dialect(is_postgresql=True))
        self.postgresql = postgresql.replace("%s", "$1").encode()
        # Another release's statement of this name may live in a session that a pooler shares: names differ by text.
        self.name = f"{name}_{hashlib.sha256(self.postgresql).hexdigest()[:8]}".encode()
        self._sql = {"postgresql": postgresql, "sqlite": write(Dialect(is_postgresql=False))}

    def ask(self, value: str) -> bytes | None:
        """The answer on the thread's own connection; None without a row. Raises: django.db.Error."""
        with connection.cursor() as cursor:
            cursor.execute(self._sql[connection.vendor], [value])
            row = cursor.fetchone()
        if row is None:
            return None
        text: str = row[0]
        return text.encode()

"""Pure: strict readers for one table of a catalog file. Each fault is recorded with its line and key."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeVar

from gateway.catalog.characters import one_line
from gateway.catalog.toml_lines import LineIndex, Path
from gateway.lib.text import clean_name

Default = TypeVar("Default", bool, None)
_KINDS = {bool: "true or false", str: "a string", list: "a list", dict: "a table", int: "a number", float: "a number"}


class CatalogError(ValueError):
    """One fault of a catalog file. `str()` is one line with file, line and key."""

    def __init__(self, message: str, line: int, key: str, *, source: str) -> None:
        super().__init__(f"{one_line(source, limit=200)}, line {line}, {one_line(key, limit=120)}: {message}")
        self.message = message
        self.line = line
        self.key = key
        self.source = source


class FaultList:
    def __init__(self, source: str, lines: LineIndex) -> None:
        self.source = source
        self.lines = lines
        # All faults of a file, so that they can be fixed in one pass.
        self.found: list[CatalogError] = []

    def add(self, path: Path, message: str) -> None:
        self.found.append(CatalogError(message, self.lines.line(path), key_name(path), source=self.source))


class TomlTable:
    """One table. Each reader removes a key; `finish` reports the keys that are left."""

    # A reader that finds a fault records it and returns the default, so that reading goes on.
    def __init__(self, values: dict[str, Any], path: Path, faults: FaultList) -> None:
        self._rest = dict(values)
        self.path = path
        self.faults = faults

    def fault(self, key: str, message: str) -> None:
        self.faults.add((*self.path, key), message)

    def text(self, key: str, default: str | None = None, *, limit: int = 500) -> str:
        """A string: trimmed, NFC, without control characters. Without `default` it is required and non-empty."""
        value = self._rest.pop(key, default)
        if value is None:
            self.fault(key, "is missing")
            return ""
        if not isinstance(value, str):
            self.fault(key, f"must be a string, not {_kind(value)}")
            return default or ""
        if default is None and not value.strip():
            self.fault(key, "may not be empty")
            return ""
        try:
            return clean_name(value, max_characters=limit, allow_empty=True)
        except ValueError as error:
            self.fault(key, str(error))
            return default or ""

    def flag(self, key: str, default: Default) -> bool | Default:
        value: object = self._rest.pop(key, default)
        if value is default or isinstance(value, bool):
            return value
        self.fault(key, f"must be true or false, not {_kind(value)}")
        return default

    def number(self, key: str, default: float, low: float, high: float) -> float:
        value = self._rest.pop(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fault(key, f"must be a number, not {_kind(value)}")
        elif not math.isfinite(value) or not low <= value <= high:
            self.fault(key, f"must be between {low:g} and {high:g}")
        else:
            return value
        return default

    def whole_number(self, key: str, low: int, high: int) -> int | None:
        """An integer from `low` to `high`; None if the key is absent."""
        value = self._rest.pop(key, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self.fault(key, f"must be a whole number, not {_kind(value)}")
        elif not low <= value <= high:
            self.fault(key, f"must be between {low} and {high}")
        else:
            return value
        return None

    def texts(self, key: str, *, limit: int) -> tuple[str, ...]:
        """A list of distinct, non-empty strings; empty if the key is absent."""
        value = self._rest.pop(key, [])
        if not isinstance(value, list) or not all(isinstance(each, str) and each.strip() for each in value):
            self.fault(key, "must be a list of strings, none of them empty")
            return ()
        try:
            cleaned = tuple(clean_name(each) for each in value)
        except ValueError as error:
            self.fault(key, str(error))
            return ()
        if len(set(cleaned)) != len(cleaned) or len(cleaned) > limit:
            self.fault(key, f"may name each value once, and at most {limit}")
        return cleaned

    def table(self, key: str) -> TomlTable | None:
        """The table `[...key]`; None if it is absent or not a table."""
        value = self._rest.pop(key, None)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.fault(key, f"must be a table, not {_kind(value)}")
            return None
        return TomlTable(value, (*self.path, key), self.faults)

    def tables(self, key: str, *, limit: int) -> Iterator[TomlTable]:
        """The tables `[[...key]]` in order; none if the key is absent."""
        value = self._rest.pop(key, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            self.fault(key, f"must be a list of tables, written [[{key_name((*self.path, key), numbers=False)}]]")
            return
        if len(value) > limit:
            self.fault(key, f"may have at most {limit} entries")
            return
        for number, each in enumerate(value):
            yield TomlTable(each, (*self.path, key, number), self.faults)

    def keys_left(self) -> tuple[str, ...]:
        return tuple(self._rest)

    def take_all(self) -> dict[str, Any]:
        rest, self._rest = self._rest, {}
        return rest

    def finish(self) -> None:
        for key in self.take_all():
            self.fault(key, "is not a key of the catalog")


def key_name(path: Path, *, numbers: bool = True) -> str:
    """`path` in the notation vendor[0].headers[1].name."""
    name = ""
    for part in path:
        if isinstance(part, int):
            name += f"[{part}]" if numbers else ""
        else:
            name += f".{part}" if name else part
    return name


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a date or time")

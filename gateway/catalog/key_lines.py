"""Pure: the line of each key in a TOML text, which `tomllib` does not report."""

import tomllib
from typing import Any

Path = tuple[str | int, ...]


def key_lines(text: str) -> dict[Path, int]:
    """The lines (from 1) of the tables and keys of a text that `tomllib` has accepted.

    A path runs from the top: ("vendor", 0, "headers", 1, "name"). Keys of an inline table have that table's line.
    """
    lines: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    start, statement = 1, ""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        statement += f"{line}\n"
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue  # the value goes on in the next line
        if statement.lstrip().startswith("["):
            table = _header_path(parsed, counts)
            lines.setdefault(table, start)
        else:
            _record(parsed, table, start, lines)
        start, statement = number + 1, ""
    return lines


def line_of(path: Path, lines: dict[Path, int]) -> int:
    """The line of `path` or of its nearest recorded parent; 1 if there is none."""
    return next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), 1)


def _header_path(parsed: Any, counts: dict[Path, int]) -> Path:
    """The path that a table header opens.

    `parsed`: that header alone, parsed; `counts`: how often each array of tables was opened so far.
    """
    path: Path = ()
    while parsed:
        [(key, parsed)] = parsed.items()
        path = (*path, key)
        if isinstance(parsed, list):
            counts[path] = counts.get(path, 0) + 1
            [parsed] = parsed
        # In a header, an array of tables stands for its latest element (TOML 1.0).
        if path in counts:
            path = (*path, counts[path] - 1)
    return path


def _record(parsed: Any, table: Path, line: int, lines: dict[Path, int]) -> None:
    while isinstance(parsed, dict) and len(parsed) == 1:
        [(key, parsed)] = parsed.items()
        table = (*table, key)
        lines.setdefault(table, line)

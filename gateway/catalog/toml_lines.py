"""Pure: the line of each key in a TOML text, which `tomllib` does not report."""

import re
import tomllib

Path = tuple[str | int, ...]

_STRING_OR_COMMENT = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*', re.DOTALL
)
_BRACKETS = {"[": 1, "{": 1, "]": -1, "}": -1}


class LineIndex:
    """Lines (from 1) of the tables and keys of a TOML text that `tomllib` has accepted.

    A path runs from the top: ("vendor", 0, "headers", 1, "name"). Keys of an inline table have that table's line.
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}
        table: Path = ()
        for line, statement in _statements(text):
            if statement.startswith("[["):
                table = self._open_array_table(_key_parts(statement[2 : statement.rindex("]]")]))
                self._lines[table] = line
            elif statement.startswith("["):
                table = self._resolved(_key_parts(statement[1 : statement.rindex("]")]))
                self._lines.setdefault(table, line)
            else:
                self._record(table, _key_parts(_key_text(statement)), line)

    def line(self, path: Path) -> int:
        """The line of `path` or of its nearest recorded parent; 1 if there is none."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._lines:
                return self._lines[path[:length]]
        return 1

    def _open_array_table(self, parts: tuple[str, ...]) -> Path:
        path = (*self._resolved(parts[:-1]), parts[-1])
        self._counts[path] = self._counts.get(path, 0) + 1
        return (*path, self._counts[path] - 1)

    def _resolved(self, parts: tuple[str, ...]) -> Path:
        path: Path = ()
        # In a header, an array of tables stands for its latest element (TOML 1.0).
        for part in parts:
            path = (*path, part)
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        return path

    def _record(self, table: Path, parts: tuple[str, ...], line: int) -> None:
        for length in range(1, len(parts) + 1):
            self._lines.setdefault((*table, *parts[:length]), line)


def _statements(text: str) -> list[tuple[int, str]]:
    """(line, text) of each header and assignment, without comments; multi-line values stay whole."""
    statements: list[tuple[int, str]] = []
    position, line, depth, start, current = 0, 1, 0, 1, ""
    while position < len(text):
        match = _STRING_OR_COMMENT.match(text, position)
        piece = match.group() if match else text[position]
        position += len(piece)
        if piece == "\n" and depth <= 0:
            if current.strip():
                statements.append((start, current.strip()))
            current, depth = "", 0
        elif not piece.startswith("#"):
            if not current.strip():
                start = line
            current += piece
            depth += _BRACKETS.get(piece, 0)
        line += piece.count("\n")
    if current.strip():
        statements.append((start, current.strip()))
    return statements


def _key_text(statement: str) -> str:
    # Skip quoted parts, which may contain an equals sign.
    position = 0
    while statement[position] != "=":
        match = _STRING_OR_COMMENT.match(statement, position)
        position = match.end() if match else position + 1
    return statement[:position]


def _key_parts(key: str) -> tuple[str, ...]:
    """The names of a dotted key; `tomllib` itself resolves quotes and escapes."""
    parts: list[str] = []
    value: object = tomllib.loads(f"{key.strip()} = 0")
    while isinstance(value, dict):
        [(name, value)] = value.items()
        parts.append(name)
    return tuple(parts)

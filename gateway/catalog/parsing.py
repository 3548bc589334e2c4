"""Pure: a catalog file parsed into vendors, or into the list of all its faults."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.catalog.characters import one_line
from gateway.catalog.key_lines import Path, key_lines, line_of
from gateway.catalog.table_shapes import Faults, read_vendors
from gateway.catalog.vendor import Vendor
from gateway.catalog.vendor_rules import Fault, catalog_faults

MAX_FILE_BYTES = 1024 * 1024
_SYNTAX_LINE = re.compile(r"\(at line (\d+), column \d+\)$")
_KEY_OF_LINE = re.compile(r"""\s*(\[{0,2}\s*[\w."' -]+?)\s*(?:=|\]|$)""")


class CatalogError(ValueError):
    """One fault of a catalog file. `str()` is one line with file, line and key, and the vendor where it is known."""

    def __init__(self, message: str, line: int, key: str, *, source: str, slug: str = "") -> None:
        place = f"{one_line(source, limit=200)}, line {line}, {one_line(key, limit=120)}"
        super().__init__(f"{place}{f' ({slug})' if slug else ''}: {message}")
        self.message = message
        self.line = line
        self.key = key
        self.source = source


class CatalogErrors(ValueError):
    """All faults of one or more catalog files. `str()` has one line for each."""

    def __init__(self, errors: Iterable[CatalogError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))


@dataclass(frozen=True, slots=True)
class CatalogFile:
    source: str
    text: str
    vendors: tuple[Vendor, ...]

    def errors(self, faults: Sequence[Fault]) -> list[CatalogError]:
        """The errors of the faults, in the order of lines."""
        lines = key_lines(self.text)
        slugs: dict[Path, str] = {("vendor", number): vendor.slug for number, vendor in enumerate(self.vendors)}
        for path, _ in faults:
            if path[2:] == ("slug",):
                slugs.pop(path[:2])
        errors = [
            CatalogError(
                message, line_of(path, lines), _key_name(path), source=self.source, slug=slugs.get(path[:2], "")
            )
            for path, message in faults
        ]
        return sorted(errors, key=lambda error: error.line)


def decode_catalog(raw: bytes, source: str) -> str:
    """The text of a catalog file. Raises: CatalogErrors when it is too long or not UTF-8."""
    if len(raw) > MAX_FILE_BYTES:
        raise CatalogErrors([CatalogError(f"is longer than {MAX_FILE_BYTES} bytes", 1, "file", source=source)])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise CatalogErrors([CatalogError("is not UTF-8 text", line, "file", source=source)]) from None


def read_catalog(text: str, source: str) -> CatalogFile:
    """The vendors of a file, with its text. Raises: CatalogErrors with all faults. Spec: contract §4"""
    shape_faults: Faults = {}
    try:
        vendors = read_vendors(tomllib.loads(text), shape_faults)
    except tomllib.TOMLDecodeError as error:
        raise CatalogErrors([_syntax_error(str(error), text, source)]) from None
    except RecursionError:
        raise CatalogErrors([CatalogError("is nested too deeply", 1, "file", source=source)]) from None
    faults = [*shape_faults.items(), *(each for each in catalog_faults(vendors) if each[0] not in shape_faults)]
    if not vendors and not faults:
        faults.append((("vendor",), "is missing: the file has no [[vendor]]"))
    file = CatalogFile(source, text, vendors)
    if faults:
        raise CatalogErrors(file.errors(faults))
    return file


def _syntax_error(message: str, text: str, source: str) -> CatalogError:
    match = _SYNTAX_LINE.search(message)
    lines = text.splitlines() or [""]
    line = int(match.group(1)) if match else len(lines)
    key = _KEY_OF_LINE.match(lines[line - 1]) if line <= len(lines) else None
    name = key.group(1).strip("[ ") if key else ""
    return CatalogError(_SYNTAX_LINE.sub("", message).strip(), line, name or "file", source=source)


def _key_name(path: Path) -> str:
    """`path` in the notation vendor[0].headers[1].name."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")

"""Pure: CSV by RFC 4180 in UTF-8, with cells that no spreadsheet takes for a formula. Spec: D84, D85"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

MEDIA_TYPE = "text/csv; charset=utf-8"
# A cell that begins with one of these would be run as a formula (OWASP, CSV injection).
FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
# Where a semicolon separates cells, what stands behind it begins one.
_FORMULA_INSIDE = re.compile(r"[;\t]\s*[=+\-@＝＋－＠]")


def encode_rows(rows: Iterable[Sequence[str]]) -> bytes:
    """One record for each row, ended by CRLF. Cells with line ends, commas or quotes are quoted."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerows([_harmless(cell) for cell in row] for row in rows)
    return text.getvalue().encode()


def _harmless(cell: str) -> str:
    is_formula = cell.startswith(FORMULA_BEGINNINGS) or _FORMULA_INSIDE.search(cell)
    return f"'{cell}" if is_formula else cell

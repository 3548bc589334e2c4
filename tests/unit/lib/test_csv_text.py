"""CSV that every reader takes apart as it was put together, and no spreadsheet runs."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.lib.csv_text import FORMULA_BEGINNINGS, encode_rows

cells = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))


def read(body: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(body.decode(), newline=""), strict=True))


@given(st.lists(st.tuples(cells, cells, cells)))
def test_what_is_written_is_read(rows: list[tuple[str, ...]]) -> None:
    def is_formula(cell: str) -> bool:
        behind = [part.lstrip() for part in re.split("[;\t]", cell)[1:]]
        return any(part.startswith(FORMULA_BEGINNINGS) for part in [cell, *behind] if part)

    shown = [[f"'{cell}" if is_formula(cell) else cell for cell in row] for row in rows]
    assert read(encode_rows(rows)) == shown


@pytest.mark.parametrize("beginning", FORMULA_BEGINNINGS)
def test_a_formula_becomes_text(beginning: str) -> None:
    assert read(encode_rows([(f"{beginning}1", f"a{beginning}")])) == [[f"'{beginning}1", f"a{beginning}"]]


@pytest.mark.parametrize("cell", ["x;=1+1", "x; =1+1", "x\t@1", "＝1+1"])
def test_a_formula_behind_another_separator_becomes_text(cell: str) -> None:
    assert read(encode_rows([(cell, "a;b", "a - b")])) == [[f"'{cell}", "a;b", "a - b"]]


def test_lines_end_as_rfc_4180_says_and_nothing_stands_before_the_first() -> None:
    assert encode_rows([("a", "b"), ("é", 'say "x", y')]) == 'a,b\r\né,"say ""x"", y"\r\n'.encode()
    assert encode_rows([]) == b""

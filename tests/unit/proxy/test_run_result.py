"""A result as the page shows it: text, table, image, and no more than fits."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from proxy.outcomes import Delivered
from proxy.pages import run_result
from proxy.pages.run_result import (
    MAX_BLOCKS,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_IMAGE_BYTES,
    MAX_PARSED_BYTES,
    MAX_ROWS,
    Block,
    result_of,
)

PNG = base64.b64encode(b"\x89PNG").decode()


def blocks(result: dict[str, Any]) -> list[Block]:
    return result_of(Delivered(json.dumps(result).encode(), is_error=False), "Acme").blocks


def of_text(text: str) -> Block:
    [found] = blocks({"content": [{"type": "text", "text": text}]})
    return found


def test_text_stays_text() -> None:
    assert of_text("<b>7</b>") == Block(text="<b>7</b>")
    assert of_text("{broken") == Block(text="{broken")


@pytest.mark.parametrize(
    "wrap", [lambda rows: rows, lambda rows: {"items": rows}, lambda rows: {"items": rows, "n": 2}]
)
def test_a_list_of_objects_is_a_table(wrap: Any) -> None:
    found = of_text(json.dumps(wrap([{"id": 1, "name": "a"}, {"id": 2, "tags": ["x"]}])))
    assert found.columns == ("id", "name", "tags")
    assert found.rows == (("1", "a", ""), ("2", "", '["x"]'))


def test_a_long_table_says_what_is_left_out() -> None:
    found = of_text(json.dumps([{"id": number} for number in range(MAX_ROWS + 1)]))
    assert len(found.rows) == MAX_ROWS
    assert f"{MAX_ROWS} of {MAX_ROWS + 1} rows" in found.note


def test_a_structured_result_is_shown_once() -> None:
    value = {"total": 7}
    assert len(blocks({"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value})) == 1
    assert len(blocks({"content": [{"type": "text", "text": "seven"}], "structuredContent": value})) == 2
    assert len(blocks({"content": [], "structuredContent": value})) == 1


def image(kind: str, data: Any) -> Block:
    [found] = blocks({"content": [{"type": "image", "mimeType": kind, "data": data}]})
    return found


def test_a_raster_image_is_shown() -> None:
    assert image("image/png", PNG).image == f"data:image/png;base64,{PNG}"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("image/svg+xml", PNG),
        ("text/html", PNG),
        ('image/png" onerror="x', PNG),
        ("image/png", '" onerror="alert(1)'),
        ("image/png", 7),
        ("image/png", "A" * (MAX_IMAGE_BYTES * 2)),
    ],
)
def test_another_image_is_a_note(kind: str, data: Any) -> None:
    found = image(kind, data)
    assert (found.image, found.text) == ("", "")
    assert found.note


def test_a_large_result_is_not_parsed() -> None:
    [found] = result_of(Delivered(b'"' + b"x" * MAX_PARSED_BYTES + b'"', is_error=False), "Acme").blocks
    assert "too large" in found.note
    assert not found.text


@pytest.mark.parametrize("raw", [b"7", b"{}", b'{"content": 7}', b'{"content": [7, null]}'])
def test_a_strange_result_is_no_fault(raw: bytes) -> None:
    assert result_of(Delivered(raw, is_error=False), "Acme").blocks


def test_a_vendor_cannot_break_the_page() -> None:
    deep = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)
    assert of_text(deep) == Block(text=deep)
    assert [each.text for each in blocks({"structuredContent": json.loads(deep)})] == [""]
    [deeper] = result_of(Delivered(b'{"structuredContent":' + b"[" * 5_000 + b"]" * 5_000 + b"}", False), "Acme").blocks
    assert deeper.note
    assert not image({}, PNG).image  # type: ignore[arg-type]


def test_no_more_is_prepared_than_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = []
    monkeypatch.setattr(run_result, "_of_part", lambda part: prepared.append(part) or Block(text="x"))
    found = blocks({"content": [{}] * (MAX_BLOCKS + 7)})
    assert len(prepared) == MAX_BLOCKS
    assert found[-1].note == "7 more parts are not shown."


def test_indentation_does_not_make_a_small_result_large() -> None:
    nested: Any = [1] * 50_000
    for _ in range(MAX_DEPTH - 2):
        nested = [nested]
    assert len(run_result._pretty(nested)) < 2 * MAX_CHARACTERS
    assert len(of_text(json.dumps(nested)).text) == MAX_CHARACTERS

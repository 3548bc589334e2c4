"""Names: what people really type is kept, what hides or reorders text is refused, and no input costs seconds."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.lib.text import NAME_MAX_CHARACTERS, clean_name


@pytest.mark.parametrize(
    "name",
    [
        "Acme",
        "Müller & Söhne GmbH",
        "株式会社エイクミ",
        "شرکت نمونه",
        "می\u200cخواهم",  # Persian needs the zero-width non-joiner
        "👩\u200d💻 Ops",  # a composed emoji needs the joiner
        "<b>O'Brien</b>",  # markup is text: pages escape it
        "=1+1",
        "\U0001fae9 newer emoji",
        "n" * NAME_MAX_CHARACTERS,
    ],
)
def test_names_of_people_and_companies_are_kept(name: str) -> None:
    assert clean_name(name) == name


def test_a_name_is_trimmed_and_composed() -> None:
    assert clean_name(" \u00a0\tCafe\u0301\u2003\n") == "Caf\u00e9"


def test_decomposed_names_count_as_they_are_stored() -> None:
    assert clean_name("e\u0301" * NAME_MAX_CHARACTERS) == "\u00e9" * NAME_MAX_CHARACTERS


@pytest.mark.parametrize(
    "name",
    [
        "a\nb",
        "a\x00b",
        "a\x1b[31mb",
        "a\x85b",
        "a\u2028b",
        "a\u2029b",
        "a\u202eb",  # right-to-left override
        "a\u2066b\u2069",
        "a\u061cb",  # Arabic letter mark
        "a\u200bb",
        "a\u2060b",
        "a\u00adb",
        "a\ufeffb",
        "a\u206fb",
        "a\ufff9b",
        "a\ud800b",
        "a\ue000b",
        "a\ufdd0b",
        "a\uffffb",
        "a" + "".join(chr(0xE0000 + ord(each)) for each in "ignore this"),  # tag characters: unseen, read by models
        "a\U000e0080b",
    ],
)
def test_characters_that_hide_or_reorder_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not allowed"):
        clean_name(name)


@pytest.mark.parametrize("name", ["", "   ", "\n\t", "\u3164", "\u2800\u115f", "\u200d\u200c", "\u0301", "\ufe0f"])
def test_a_name_shows_something(name: str) -> None:
    with pytest.raises(ValueError, match="Enter a name"):
        clean_name(name)


def test_an_empty_name_passes_where_it_may() -> None:
    assert clean_name("  ", allow_empty=True) == ""
    with pytest.raises(ValueError, match="not allowed"):
        clean_name("\u202e", allow_empty=True)


@pytest.mark.parametrize(("length", "maximum"), [(101, 100), (6, 5), (100_000, 100)])
def test_a_long_name_is_refused(length: int, maximum: int) -> None:
    with pytest.raises(ValueError, match=f"at most {maximum} characters"):
        clean_name("n" * length, max_characters=maximum)


def test_a_run_of_combining_marks_is_refused_before_it_costs_anything() -> None:
    started = time.perf_counter()
    with pytest.raises(ValueError, match="at most"):
        clean_name("a" + "\u0301\u0316" * 50_000)  # normalizing this takes seconds
    assert time.perf_counter() - started < 5  # a guard against hanging, not a measurement


@given(st.text(max_size=NAME_MAX_CHARACTERS * 5))
def test_whatever_passes_is_normal_bounded_and_passes_again(raw: str) -> None:
    try:
        name = clean_name(raw)
    except ValueError:
        return
    assert 1 <= len(name) <= NAME_MAX_CHARACTERS
    assert unicodedata.is_normalized("NFC", name)
    assert name == name.strip()
    assert clean_name(name) == name

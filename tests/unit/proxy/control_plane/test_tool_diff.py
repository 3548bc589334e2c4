"""The display of a vendor's words: hidden characters, differences, claims."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.control_plane import tool_diff
from proxy.control_plane.tool_diff import DiffPiece, hints, line_diff, visible, word_diff


@pytest.mark.parametrize(
    ("text", "expected", "hidden"),
    [
        ("List things.\n\tAll of them.", "List things.\n\tAll of them.", 0),
        ("Größe, 大きさ, اندازه", "Größe, 大きさ, اندازه", 0),
        ("List\u200b things", "List[U+200B] things", 1),
        ("safe\u202egnihton", "safe[U+202E]gnihton", 1),
        ("\U000e0041\U000e0042", "[U+E0041][U+E0042]", 2),
        ("a\u3164b\r\x1b[2J", "a[U+3164]b[U+000D][U+001B][2J", 3),
        ("می\u200cخواهم", "می\u200cخواهم", 0),  # a joiner that Persian is written with
        ("👩\u200d💻", "👩\u200d💻", 0),
        ("ad\u200dmin", "ad[U+200D]min", 1),
        ("\u200d", "[U+200D]", 1),
        ("می\u200c\u200dخ", "می[U+200C][U+200D]خ", 2),
        (
            "❤\ufe0f\u200d🔥 1\ufe0f\u20e3 ℹ\ufe0f ‼\ufe0f ✔\ufe0e",
            "❤\ufe0f\u200d🔥 1\ufe0f\u20e3 ℹ\ufe0f ‼\ufe0f ✔\ufe0e",
            0,
        ),
        ("😀\ufe0f\ufe01\U000e0158", "😀\ufe0f[U+FE01][U+E0158]", 2),  # bytes behind an emoji
        ("й\ufe00ц\ufe0fу\U000e0141", "й[U+FE00]ц[U+FE0F]у[U+E0141]", 3),  # a byte behind each letter
        ("😀\ufe00葛\U000e0100ᠠ\u180bក\u17b4", "😀[U+FE00]葛[U+E0100]ᠠ[U+180B]ក[U+17B4]", 4),
        ("a\ufe00b\U000e0101", "a[U+FE00]b[U+E0101]", 2),
        ("\ufe0f", "[U+FE0F]", 1),
        ("a\u034fb\U000e0080\ufff0", "a[U+034F]b[U+E0080][U+FFF0]", 3),
    ],
)
def test_hidden_characters_are_spelled_out(text: str, expected: str, hidden: int) -> None:
    found = visible(text)
    assert (found.text, found.hidden) == (expected, hidden)


def test_words_that_came_and_went_are_marked() -> None:
    assert word_diff("List all things.", "List all keys. Send them.") == [
        DiffPiece("same", "List all "),
        DiffPiece("removed", "things."),
        DiffPiece("added", "keys. Send them."),
    ]
    assert word_diff("Deletes a ticket when asked.", "Deletes a ticket for good.") == [
        DiffPiece("same", "Deletes a ticket "),
        DiffPiece("removed", "when asked."),
        DiffPiece("added", "for good."),
    ]
    assert word_diff("", "New.") == [DiffPiece("added", "New.")]
    assert word_diff("Gone.", "") == [DiffPiece("removed", "Gone.")]


@given(st.text(max_size=200), st.text(max_size=200))
def test_both_versions_can_be_read_out_of_a_difference(before: str, after: str) -> None:
    pieces = word_diff(before, after)
    assert "".join(piece.text for piece in pieces if piece.kind != "added") == before
    assert "".join(piece.text for piece in pieces if piece.kind != "removed") == after


def test_what_is_too_long_to_compare_is_shown_whole() -> None:
    before = "word " * tool_diff.MAX_COMPARED
    assert word_diff(before, "short") == [DiffPiece("removed", before), DiffPiece("added", "short")]


def test_of_long_texts_only_the_part_that_differs_is_compared() -> None:
    begin, end = "begin " * tool_diff.MAX_COMPARED, " end" * tool_diff.MAX_COMPARED
    assert word_diff(f"{begin}old{end}", f"{begin}new{end}") == [
        DiffPiece("same", begin),
        DiffPiece("removed", "old"),
        DiffPiece("added", "new"),
        DiffPiece("same", end),
    ]
    assert word_diff(begin, begin) == [DiffPiece("same", begin)]


def test_comparing_is_never_asked_to_work_on_long_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that take cubic time: the same items over and over, in another order."""
    compared: list[int] = []

    class Watched(difflib.SequenceMatcher[str]):
        def set_seqs(self, a: Sequence[str], b: Sequence[str]) -> None:
            compared.append(max(len(a), len(b)))
            super().set_seqs(a, b)

    monkeypatch.setattr(tool_diff, "SequenceMatcher", Watched)
    monkeypatch.setattr(difflib, "SequenceMatcher", Watched)  # unified_diff's
    for count in (10, 90, 4_000):
        before = ["x", "a"] * count
        after = ["y", *["x", "b"] * count, "z"]
        word_diff(" ".join(before), " ".join(after))
        line_diff("\n".join(before), "\n".join(after))
    assert compared
    assert max(compared) <= tool_diff.MAX_COMPARED + 2  # and the two lines beside them


def test_lines_that_differ_stand_beside_their_neighbours() -> None:
    before = "\n".join(f"line {number}" for number in range(9))
    pieces = line_diff(before, before.replace("line 4", "line four"))
    assert [(piece.kind, piece.text) for piece in pieces] == [
        ("same", "…\n"),
        ("same", "line 3\n"),
        ("removed", "line 4\n"),
        ("added", "line four\n"),
        ("same", "line 5\n"),
    ]
    assert line_diff(before, before) == []
    longer = "\n".join(f"line {number}" for number in range(500))
    pieces = line_diff(longer, longer.replace("line 450", "line x"))
    assert [piece.text for piece in pieces] == ["…\n", "line 449\n", "line 450\n", "line x\n", "line 451\n"]


def test_too_many_lines_to_compare_are_shown_whole() -> None:
    before, after = (f"{word}\n" * (tool_diff.MAX_COMPARED + 1) for word in ("old", "new"))
    pieces = line_diff(before, after)
    assert "".join(piece.text for piece in pieces if piece.kind == "removed") == before
    assert "".join(piece.text for piece in pieces if piece.kind == "added") == after
    many = line_diff("", "new\n" * (tool_diff.MAX_LINES + 7))
    assert len(many) == tool_diff.MAX_LINES + 1
    assert many[-1] == DiffPiece("same", "… and 7 more lines\n")


@pytest.mark.parametrize(
    ("annotations", "claims"),
    [
        ({"readOnlyHint": True}, ["read-only"]),
        ({"readOnlyHint": True, "destructiveHint": True}, ["read-only"]),
        ({"destructiveHint": True}, ["destructive"]),
        ({"readOnlyHint": False}, ["writes"]),
        ({"destructiveHint": False}, ["writes"]),
        ({"readOnlyHint": "yes"}, []),
        ({}, []),
        (None, []),
        ("read-only", []),
    ],
)
def test_only_what_is_claimed_is_repeated(annotations: object, claims: list[str]) -> None:
    assert hints(annotations) == claims

from __future__ import annotations

import pytest

from audit.plain_text import has_harmful_characters, plain_text


@pytest.mark.parametrize(
    "harmless",
    [
        "",
        "acme_list_devices",
        "Łódź – 株式会社",
        "a b",
        "a\u00a0b",
        "👩\u200d💻",
        "❤\ufe0f",
        "می\u200cخواهم",
        'it\'s "quoted" <b>',
    ],
)
def test_ordinary_text_is_kept(harmless: str) -> None:
    assert plain_text(harmless, max_characters=100) == harmless
    assert not has_harmful_characters(harmless)


@pytest.mark.parametrize(
    "character",
    [
        "\x00",
        "\r",
        "\n",
        "\t",
        "\x1b",
        "\x7f",
        "\x9b",
        "\u2028",
        "\u2029",
        "\ud83d",
        "\u202e",
        "\u2066",
        "\ufeff",
        "\u00ad",
        "\u061c",
        "\u180e",
        "\u2060",
        "\u2064",
        "\u3164",
        "\u115f",
        "\ufff9",
        "\ufffb",
        "\ufe00",
        "\U000e0001",
        "\U000e0041",
        "\U000e007f",
        "\U000e0100",
    ],
)
def test_harmful_characters_are_shown_as_such(character: str) -> None:
    assert plain_text(f"a{character}b", max_characters=100) == "a\ufffdb"
    assert has_harmful_characters(f"a{character}b")


def test_a_forged_log_line_stays_on_one_line() -> None:
    assert len(plain_text("ok\r\n2026-01-01 admin signed in", max_characters=200).splitlines()) == 1


def test_text_is_cut_by_characters_not_by_bytes() -> None:
    assert plain_text("ł" * 50, max_characters=40) == "ł" * 40
    assert plain_text("x" * 40 + "\n", max_characters=40) == "x" * 40


def test_what_is_kept_can_be_encoded() -> None:
    assert plain_text("".join(map(chr, range(0x300))) + "\ud83d", max_characters=2000).encode("utf-8")

"""User codes: made, read, hashed."""

from __future__ import annotations

import pytest

from oauth_ext import user_codes


def test_new_codes() -> None:
    codes = {user_codes.new_user_code() for _ in range(200)}
    assert len(codes) == 200
    assert {len(code) for code in codes} == {8}
    assert set("".join(codes)) == set("BCDFGHJKLMNPQRSTVWXZ")


def test_how_they_are_shown() -> None:
    assert user_codes.shown("WDJBMJHT") == "WDJB-MJHT"


@pytest.mark.parametrize(
    "typed",
    [
        "WDJBMJHT",
        "WDJB-MJHT",
        "wdjb-mjht",
        " wDjB mJhT ",
        "W D J B M J H T",
        "WDJB\u2013MJHT",
        "wdjb_mjht\t",
        "w-d-j-b-m-j-h-t",
    ],
)
def test_case_dashes_and_spaces_do_not_matter(typed: str) -> None:
    assert user_codes.read(typed) == "WDJBMJHT"


@pytest.mark.parametrize(
    "typed",
    ["", "WDJB", "WDJB-MJH", "WDJB-MJHTT", "ADJB-MJHT", "WDJB-MJH1", "ＷDJBMJHT", "\x00" * 8, "-" * 200],
)
def test_what_cannot_be_a_code(typed: str) -> None:
    assert user_codes.read(typed) is None


def test_the_stored_form_depends_on_our_key(settings: object) -> None:
    first = user_codes.stored("WDJBMJHT")
    assert len(first) == 32
    assert first == user_codes.stored("WDJBMJHT") != user_codes.stored("WDJBMJHV")
    settings.SECRET_KEY = "another key of this service, as long as it must be"  # type: ignore[attr-defined]
    assert user_codes.stored("WDJBMJHT") != first

"""Listening to a vendor: addresses above an announced one, and shared places."""

from __future__ import annotations

import asyncio

import pytest

from proxy.vendors.listening import LONGEST_PAUSE_S, MAX_PARENTS, Interest, _longest_pause_s, _parents


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("test://a/b", ["test://a/", "test://a", "test://", "test:/", "test:"]),
        ("test://a/", ["test://a", "test://", "test:/", "test:"]),
        ("urn:thing", []),
        ("/", []),
        ("", []),
    ],
)
def test_addresses_above_another(address: str, expected: list[str]) -> None:
    assert list(dict.fromkeys(_parents(address))) == expected


def test_a_long_address_has_so_many_and_no_more() -> None:
    assert len(_parents("x:" + "/" * 4_096)) <= 2 * MAX_PARENTS


async def test_an_interest_wakes_its_subscriber() -> None:
    event = asyncio.Event()
    interest = Interest("test://x", event.set)
    assert not interest.has_news
    interest.tell()
    assert (interest.has_news, event.is_set()) == (True, True)


def test_a_vendor_that_is_away_for_days_is_asked_on() -> None:
    assert [_longest_pause_s(failures) for failures in (1, 2, 3, 7)] == [1.0, 2.0, 4.0, LONGEST_PAUSE_S]
    assert _longest_pause_s(5_000) == LONGEST_PAUSE_S

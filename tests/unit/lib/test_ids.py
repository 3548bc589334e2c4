"""Identifiers: random outside, time-ordered in logs, one spelling only."""

from __future__ import annotations

import os
import time
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from gateway.lib import ids

MOMENT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_what_an_outsider_sees_is_random() -> None:
    minted = {ids.new_id() for _ in range(1_000)}
    assert len(minted) == 1_000
    assert {each.version for each in minted} == {4}


def test_log_ids_are_version_7_and_carry_the_time() -> None:
    before = time.time_ns() // 1_000_000
    minted = ids.new_log_id()
    after = time.time_ns() // 1_000_000
    assert (minted.version, minted.variant) == (7, uuid.RFC_4122)
    assert before <= minted.int >> 80 <= after


def test_log_ids_of_one_millisecond_differ_and_later_ones_sort_later() -> None:
    together = [ids.log_id_for(MOMENT) for _ in range(1_000)]
    assert together == sorted(set(together))
    assert {(each.version, each.variant) for each in together} == {(7, uuid.RFC_4122)}
    assert ids.log_id_for(MOMENT + timedelta(milliseconds=1)) > max(together)


def test_an_id_carries_the_millisecond_of_its_moment() -> None:
    moment = MOMENT + timedelta(microseconds=123_999)
    made = ids.log_id_for(moment)
    assert ids.time_of(made) == MOMENT + timedelta(milliseconds=123)
    assert ids.first_log_id_at(MOMENT + timedelta(milliseconds=123)) < made < ids.first_log_id_at(moment)
    assert ids.first_log_id_at(datetime(1900, 1, 1, tzinfo=UTC)) == ids.NO_ID
    assert ids.first_log_id_at(datetime.max.replace(tzinfo=UTC)) > made


def test_a_forked_process_does_not_count_on_from_its_parents_last_id() -> None:
    last = ids.log_id_for(MOMENT)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, ids.log_id_for(MOMENT).bytes)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 16) != ids.log_id_for(MOMENT).bytes
    assert ids.log_id_for(MOMENT).int == last.int + 2
    os.close(reader)
    os.close(writer)


def test_the_one_spelling_is_read() -> None:
    value = ids.new_id()
    assert ids.parse_id(str(value)) == value


@pytest.mark.parametrize(
    "spell",
    [
        lambda value: str(value).upper(),
        lambda value: value.hex,
        lambda value: "{" + str(value) + "}",
        lambda value: value.urn,
        lambda value: f" {value}",
        lambda value: str(value)[:-1],
        lambda value: str(value)[:-1] + "٣",  # a digit to int(), not to anybody else
        lambda value: value.int,
        lambda value: [str(value)],
        lambda value: None,
        lambda value: "",
    ],
)
def test_other_spellings_and_types_name_nothing(spell: object) -> None:
    assert callable(spell)
    assert ids.parse_id(spell(uuid.UUID("abcdefab-cdef-4bcd-8fab-cdefabcdef03"))) is None

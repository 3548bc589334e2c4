"""The file of the journal of ends: whole lines from many writers, and a failure that is said and harms nothing."""

from __future__ import annotations

import fcntl
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from django.conf import LazySettings
from structlog.testing import capture_logs

from gateway.lib import revocation_journal
from gateway.lib.revocation_journal import End, EndKind, UnreadableJournal, WrittenEnd, read, write

START = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO = str(UUID(int=1)), str(UUID(int=2))


@pytest.fixture
def journal(tmp_path: Path, settings: LazySettings) -> Path:
    settings.REVOCATION_JOURNAL = tmp_path / "revocations.jsonl"
    return tmp_path / "revocations.jsonl"


def all_of(path: Path, since: datetime = START) -> tuple[list[WrittenEnd], list[int]]:
    skipped: list[int] = []
    return list(read(path, since, skipped=skipped.append)), skipped


def test_an_end_is_read_as_it_was_written(journal: Path) -> None:
    until = datetime(2026, 5, 1, 10, tzinfo=UTC)
    ends = [End(EndKind.AGENT_KEY, ONE, until=until), End(EndKind.MEMBERSHIP, TWO, ONE)]
    write(ends)
    found, skipped = all_of(journal)
    assert ([each.end for each in found], skipped) == (ends, [])
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    assert all_of(journal, found[0].at + timedelta(milliseconds=1)) == ([], [])
    assert len(all_of(journal, found[0].at)[0]) == 2


def test_lines_of_many_writers_stay_whole(journal: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: write([End(EndKind.SESSION, f"{n}-{each}") for each in range(20)]), range(40)))
    found, skipped = all_of(journal)
    assert (len({each.end.id for each in found}), skipped) == (800, [])


def test_a_writer_that_hangs_with_the_lock_holds_no_other_up(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocation_journal, "LOCK_WAIT_S", 0.01)
    with journal.open("ab") as hung:
        fcntl.flock(hung, fcntl.LOCK_EX)
        write([End(EndKind.PERSON, ONE)])
    assert [each.end.id for each in all_of(journal)[0]] == [ONE]


def test_half_a_line_of_a_killed_writer_costs_no_other(journal: Path) -> None:
    write([End(EndKind.PERSON, ONE)])
    with journal.open("ab") as file:
        file.write(b'{"at":"2026-05-01T10')
    write([End(EndKind.PERSON, TWO)])
    found, skipped = all_of(journal)
    assert ([each.end.id for each in found], skipped) == ([ONE, TWO], [2])


@pytest.mark.parametrize(
    "line",
    [
        '{"at": "2026-05-01T10:00:00Z", "kind": "later", "id": "x"}',
        '{"kind": "person"}',
        "[]",
        '{"at": "2026-05-01T10:00:00Z", "kind": "person", "id": "x"}',
    ],
)
def test_a_line_of_another_release_is_refused(journal: Path, line: str) -> None:
    journal.write_text(line + "\n")
    with pytest.raises(UnreadableJournal, match="line 1"):
        all_of(journal)


def test_a_file_that_is_not_there_is_refused(journal: Path) -> None:
    with pytest.raises(UnreadableJournal, match="cannot be read"):
        all_of(journal)


def test_a_failure_is_logged_with_the_ids_and_raises_nothing(tmp_path: Path, settings: LazySettings) -> None:
    settings.REVOCATION_JOURNAL = tmp_path / "missing" / "revocations.jsonl"
    with capture_logs() as logs:
        write([End(EndKind.AGENT_KEY, "one")])
    assert [(line["log_level"], line["ends"][0]["id"]) for line in logs] == [("error", "one")]


def test_a_full_disk_is_logged(settings: LazySettings) -> None:
    settings.REVOCATION_JOURNAL = Path("/dev/full")
    with capture_logs() as logs:
        write([End(EndKind.AGENT_KEY, "one")])
    assert [line["log_level"] for line in logs] == ["error"]
    assert os.strerror(28) == logs[0]["fault"]


def test_no_journal_writes_nothing(tmp_path: Path, settings: LazySettings) -> None:
    settings.REVOCATION_JOURNAL = None
    write([End(EndKind.AGENT_KEY, "one")])
    assert list(tmp_path.iterdir()) == []

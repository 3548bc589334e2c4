"""The log of the release before is taken over beside its calls. The short form of `tests.faults.upgraded_log`."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.scratch_database import BACKENDS, NewScratch
from tests.faults.upgraded_log import upgrade

pytest_plugins = ("tests.faults.fixtures",)


@pytest.mark.skipif("postgresql" not in BACKENDS, reason="SQLite keeps one table")
@pytest.mark.parametrize("interrupted", [False, True])
def test_no_call_fails_and_no_row_is_lost(new_scratch: NewScratch, tmp_path: Path, interrupted: bool) -> None:
    with new_scratch("postgresql", tmp_path) as database:
        report = upgrade(database, rows=20_000, interrupted=interrupted)
        with closing(database.connect()) as connection:
            left = connection.execute("SELECT conname FROM pg_constraint WHERE conname LIKE '%before_ids'").fetchall()
            assert len(left) == 1, "the check of the bound stays on the first partition alone"
    assert report.is_whole, report.line()
    # The writer's own deadline is 5 s. A busy machine slows the whole migration.
    assert report.longest_s < max(4, report.seconds / 3), report.line()

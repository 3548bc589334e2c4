"""The stream of the log while writers and its reader are killed. The short form of `tests.faults.followed_stream`."""

from pathlib import Path

import pytest

from tests.faults.followed_stream import follow
from tests.faults.scratch_database import BACKENDS, NewScratch

pytest_plugins = ("tests.faults.fixtures",)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_final_row_is_handed_out_exactly_once(new_scratch: NewScratch, backend: str, tmp_path: Path) -> None:
    with new_scratch(backend, tmp_path) as database:
        report = follow(database, seconds=8, writers=4, seed=1)
    assert report.is_exact, report.line()

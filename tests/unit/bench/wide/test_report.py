"""The report of a wide run, its document, and its cells beside a committed report."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench.comparison import against_committed
from bench.wide.report import base_of, goals_of, limited_by_machine, render, wide_cells
from bench.wide.results import WideResults
from tests.unit.bench.wide.found import whole_run


def text_of(results: WideResults) -> str:
    return render(results, head=["On a machine"], audit=["Audit rows: 5 for 5 answered calls: equal"])


def test_the_whole_report() -> None:
    text = text_of(whole_run())
    for part in (
        "On a machine",
        "narrow, proxy and 4",
        "first calls, one by one",
        "a caller: 2.00 kB",
        "sent 120 calls over 4 processes: 40 were answered",
        "refused by each process after 0.010, 0.200 s",
        "steady, wide, 700 calls a second",
        "84 objects were left for the collector",
        "0 missed, 0 not measured",
        "audit rows: 5",
    ):
        assert part.lower() in text.lower()


def test_a_run_of_one_process_without_postgresql_says_what_it_left_out() -> None:
    whole = whole_run()
    known = [msgspec.structs.replace(each, statements_by_name={}) for each in whole.first_calls]
    text = text_of(whole_run(points=whole.points[:2], first_calls=known, steady=None))
    assert "Statements were not counted: that needs PostgreSQL." in text
    assert "Steady, wide" not in text
    assert "not measured" in text


def test_ratios_are_to_narrow_of_as_many_processes() -> None:
    assert base_of("wide, proxy and 2") == "narrow, proxy and 2"
    assert base_of("wide") == "narrow"
    assert base_of("narrow, proxy and 2") == "narrow, proxy and 2"


def test_a_machine_without_idle_cores_is_named_as_what_limits() -> None:
    busy = {"wide": [1.95, 1.9, 2.0], "narrow": [1.2], "none": []}
    first, *_ = limited_by_machine(WideResults(cores=2, busy_cores=busy))
    assert first == "No core was idle with: wide."
    assert limited_by_machine(WideResults(cores=4, busy_cores=busy)) == []


def test_faults_are_in_the_report() -> None:
    assert "FAILED: the audit log holds" in text_of(whole_run(faults=["FAILED: the audit log holds {}"]))


def test_the_document_names_every_goal_and_whether_it_is_met() -> None:
    document = msgspec.json.decode(msgspec.json.encode(goals_of(whole_run(steady=None))))
    met = {each["goal"]: each["met"] for each in document}
    assert met["statements, caller unknown"] is True
    assert met["steady: errors"] is None


def test_cells_begin_with_the_cpu_of_calls_and_hold_on_another_machine_as_ratios() -> None:
    cells = wide_cells(whole_run())
    assert cells[0].name == "narrow c=16: CPU ms/call"
    ratios = {cell.name: cell.spread.median for cell in cells if cell.is_ratio}
    assert round(ratios["wide c=64: CPU ms/call, ratio to narrow"], 3) == 1.1
    assert ratios["caller unknown: statements"] == 2
    assert ratios["bytes of a caller"] == 2000


def test_a_later_run_is_compared_with_the_committed_one(tmp_path: Path) -> None:
    cells = wide_cells(whole_run())
    first = against_committed(cells, kind="wide", options="3 x 5 x 3", commits=True, folder=tmp_path)
    assert "Written: wide.json" in first
    same = against_committed(cells, kind="wide", options="3 x 5 x 3", commits=False, folder=tmp_path)
    assert "0 of" in same
    assert "wide c=16: CPU ms/call" in same
    other = against_committed(cells, kind="wide", options="9 x 5 x 3", commits=False, folder=tmp_path)
    assert "of other options: 3 x 5 x 3" in other

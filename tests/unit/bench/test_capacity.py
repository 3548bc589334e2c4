"""The capacity model is near what was measured, its tables are the document's, and the fullest part decides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import capacity
from bench.capacity import COSTS, ENGINES, POINTS
from bench.capacity_model import Demand, Point, cell_calls_per_s, fill, process_memory_bytes, processes

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "scaling.md"
ALLOWED = 0.2


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.title)
def test_the_model_is_within_a_fifth_of_each_measured_figure(point: Point) -> None:
    assert point.ratio(COSTS) == pytest.approx(1, abs=ALLOWED)


def test_a_wrong_cost_shows_in_the_figures() -> None:
    wrong = replace(COSTS, gateway_ms=2 * COSTS.gateway_ms, list_bytes=3 * COSTS.list_bytes)
    assert [point.title for point in POINTS if abs(point.ratio(wrong) - 1) > ALLOWED]


def test_the_tables_of_the_document_are_those_of_the_model() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert capacity.replaced(text) == text
    assert capacity.replaced(text.replace("Redis", "redis")) != text.replace("Redis", "redis")


def test_ten_times_the_calls_fill_every_engine_ten_times() -> None:
    small, large = (fill(COSTS, ENGINES, Demand.usual(calls)) for calls in (1_000, 10_000))
    assert large.redis == pytest.approx(10 * small.redis)
    assert large.disk == pytest.approx(10 * small.disk)


def test_the_fullest_part_is_named_and_bounds_a_cell() -> None:
    slow_disk = replace(ENGINES, wal_bytes_per_s=1e6)
    name, share = fill(COSTS, slow_disk, Demand.usual(1_000)).first()
    assert name == "PostgreSQL, WAL"
    assert cell_calls_per_s(COSTS, slow_disk) == pytest.approx(1_000 / share)
    _, full = fill(COSTS, slow_disk, Demand.usual(round(cell_calls_per_s(COSTS, slow_disk)))).first()
    assert full == pytest.approx(1, abs=0.01)


def test_processes_follow_the_calls_and_know_their_share_of_the_callers() -> None:
    demand = Demand.usual(100_000)
    count = processes(COSTS, ENGINES, demand)
    assert count > 8 * processes(COSTS, ENGINES, Demand.usual(10_000)) > 8
    whole = COSTS.memory_bytes(demand.organizations, demand.callers, demand.lists)
    assert COSTS.process_bytes < process_memory_bytes(COSTS, ENGINES, demand) < whole


def test_the_command_answers_for_one_deployment_and_wants_all_four_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = ["--calls", "30000", "--organizations", "8000", "--callers", "90000", "--lists", "20000"]
    assert capacity.main(numbers) == 0
    assert "web processes" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        capacity.main(numbers[:2])


def test_the_command_writes_a_document(tmp_path: Path) -> None:
    file = tmp_path / "scaling.md"
    names = ("costs", "memory", "sizes", "points")
    file.write_text("\n".join(f"<!-- {name}: python -m bench.capacity -->\n<!-- end of {name} -->" for name in names))
    assert capacity.main(["--write", str(file)]) == 0
    text = file.read_text()
    assert "| calls/s |" in text
    assert "| processor time of a call |" in text
    assert capacity.replaced(text) == text

"""The plan of a command line: its measurements, their order, and their time."""

from __future__ import annotations

import pytest

from bench import targets
from bench.plan import CONNECTIONS, DELAYED_CONNECTIONS, Plan, read_plan
from bench.results import VendorLoad
from bench.wide.sizes import Sizes


def plan(*arguments: str, **environ: str) -> Plan:
    return read_plan(arguments, environ)


def test_the_default_stays_under_four_minutes() -> None:
    found = plan()
    assert found.rounds == 3
    assert found.estimated_s() < 240


def test_the_default_measures_everything_that_was_asked_for() -> None:
    found = plan()
    assert {load.connections for load in found.loads() if not load.delay_ms} == {1, 16, 64}
    assert {targets.DIRECT, targets.PASS_THROUGH, targets.MCP_KEY, targets.MCP_JWT, targets.CLI} == set(found.targets)
    assert targets.MCP_JWT not in found.targets_at(VendorLoad(50, 1))
    assert {targets.DIRECT, targets.PASS_THROUGH, targets.MCP_KEY, targets.CLI} == set(
        found.targets_at(VendorLoad(50, 16))
    )


def test_quick_is_quick() -> None:
    assert plan("--quick").estimated_s() < 60
    assert plan("--quick", "--rounds", "2").rounds == 2


def test_rounds_are_interleaved_and_begin_with_another_target() -> None:
    points = list(plan("--targets", "direct,passthrough,cli", "--rounds", "3", "--no-delay").points())
    assert len(points) == 3 * len(CONNECTIONS) * 3
    first = [
        [name for number, load, name in points if number == wanted and load == VendorLoad(0, 16)] for wanted in (0, 1)
    ]
    assert first[0] == [targets.DIRECT, targets.PASS_THROUGH, targets.CLI]
    assert first[1] == [targets.PASS_THROUGH, targets.CLI, targets.DIRECT]
    loads = [load.connections for number, load, _ in points if number == 0]
    assert loads == [count for count in CONNECTIONS for _ in range(3)]


def test_targets_that_are_not_delayed_leave_an_empty_row() -> None:
    points = list(plan("--targets", "mcp-write", "--rounds", "1").points())
    assert [load for _, load, _ in points] == [VendorLoad(0, count) for count in CONNECTIONS]
    assert VendorLoad(50, DELAYED_CONNECTIONS[0]) in plan("--targets", "mcp-write").loads()


def test_make_bench_gives_options_by_environment() -> None:
    found = plan("--rounds", "1", BENCH_OPTIONS="--targets 'direct, cli' --rounds 5 --form sse")
    assert found.targets == (targets.DIRECT, targets.CLI)
    assert (found.rounds, found.form) == (1, "sse")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--targets", "nginx"),
        ("--targets", ""),
        ("--rounds", "21"),
        ("--rounds", "-1"),
        ("--seconds", "31"),
        ("--seconds", "0.01"),
        ("--profile", "31"),
        ("--form", "xml"),
        ("--unknown",),
    ],
)
def test_what_is_out_of_bounds_is_refused(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refusal:
        plan(*arguments)
    assert refusal.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_wide_has_sizes_of_its_own() -> None:
    assert plan().wide is None
    found = plan("--wide", "--organizations", "10000", "--vendors", "4", "--steady", "5").wide
    assert found is not None
    assert (found.sizes, found.steady_minutes) == (Sizes(10_000, 5, 4), 5)


@pytest.mark.parametrize(
    ("asked", "are_shared", "counts"),
    [
        ("0", True, [1, 2, 4]),
        ("0", False, [1]),
        ("1", True, [1]),
        ("2", True, [1, 2]),
        ("3", True, [1, 2, 3]),
        ("8", True, [1, 2, 4, 8]),
    ],
)
def test_processes_are_as_many_as_asked_for_or_as_the_back_ends_allow(
    asked: str, are_shared: bool, counts: list[int]
) -> None:
    found = plan("--wide", "--processes", asked).wide
    assert found is not None
    assert found.process_counts(are_shared=are_shared) == counts


def test_more_callers_and_minutes_take_longer() -> None:
    small, large = (plan("--wide", "--organizations", number).estimated_s() for number in ("100", "1000"))
    assert small < large
    assert plan("--wide", "--steady", "3").estimated_s() == plan("--wide").estimated_s() + 240


@pytest.mark.parametrize(
    "arguments",
    [
        ("--organizations", "1"),
        ("--organizations", "1000000"),
        ("--callers", "0"),
        ("--vendors", "21"),
        ("--processes", "9"),
        ("--steady", "31"),
        ("--steady", "-1"),
    ],
)
def test_sizes_out_of_bounds_are_refused(arguments: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        plan("--wide", *arguments)
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err

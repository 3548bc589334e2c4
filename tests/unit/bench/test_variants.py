"""Variants: how they are read, started and compared."""

from __future__ import annotations

import sys

import pytest

from bench.processes import BenchFailed
from bench.variants import METRICS, Slice, Variant, lines, main


def test_a_name_alone_is_the_gateway_as_it_is() -> None:
    variant = Variant.read("base")
    assert variant == Variant("base")
    command = variant.command(8123)
    assert command[0] == sys.executable
    assert command[command.index("--loop") + 1] == "uvloop"


def test_interpreter_loop_and_code_are_chosen_one_by_one() -> None:
    variant = Variant.read("new:python=/opt/python,loop=rloop:new_event_loop,code=/tmp/built")
    assert variant == Variant("new", "/opt/python", "rloop:new_event_loop", "/tmp/built")
    command = variant.command(8123)
    assert (command[0], command[command.index("--loop") + 1]) == ("/opt/python", "rloop:new_event_loop")
    assert command[1:4] == ("-m", "uvicorn", "gateway.asgi:application")


def test_a_variable_may_have_any_value() -> None:
    variant = Variant.read("new:env=METRICS_ADDRESS=127.0.0.1:9464")
    assert variant.variables == METRICS[1].variables == {"METRICS_ADDRESS": "127.0.0.1:9464"}
    assert [each.variables for each in (METRICS[0], METRICS[2])] == [{}, {}], "without them, twice"


def test_nothing_to_compare_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 1
    assert "nothing to compare" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", ":loop=asyncio", "new:speed=9", "new:loop"])
def test_what_is_no_variant_is_refused(text: str) -> None:
    with pytest.raises(BenchFailed, match="after a colon"):
        Variant.read(text)


def test_ratios_are_taken_inside_their_round() -> None:
    """The machine slowed down in the second round, for both."""
    found = {
        "base": [Slice(1.0, 1_000.0), Slice(2.0, 500.0), Slice(1.0, 1_000.0)],
        "new": [Slice(0.5, 2_000.0), Slice(1.0, 1_000.0), Slice(0.5, 2_000.0)],
    }
    first, second = lines(16, found)
    assert first == "c=16  base             1.000 ms of CPU a call (x1.000), 1,000 calls/s (x1.000)"
    assert second == "c=16  new              0.500 ms of CPU a call (x0.500), 2,000 calls/s (x2.000)"

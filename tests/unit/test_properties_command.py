"""The command that draws random examples: it stops at the first failing round and says how to see it again."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def command() -> ModuleType:
    spec = importlib.util.spec_from_file_location("properties", ROOT / "scripts" / "properties.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def play(command: ModuleType, monkeypatch: pytest.MonkeyPatch, rounds: list[tuple[int, str]]) -> list[int]:
    """Answer each round with the next of `rounds`; returns the seeds that were played."""
    seeds: list[int] = []
    answers: Iterator[tuple[int, str]] = iter(rounds)

    def answer(seed: int) -> tuple[int, str]:
        seeds.append(seed)
        return next(answers)

    monkeypatch.setattr(command, "play_round", answer)
    return seeds


def test_one_round_is_played_even_when_no_time_is_given(
    command: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds = play(command, monkeypatch, [(0, "..\n== 2 passed in 1s ==\n")])
    assert command.main(["0"]) == 0
    assert f"round 1, seed {seeds[0]}: 2 passed in 1s" in capsys.readouterr().out


def test_the_first_failing_round_ends_the_run_and_names_its_seed(
    command: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds = play(command, monkeypatch, [(0, "2 passed"), (1, "Falsifying example: x=0")])
    assert command.main(["3600"]) == 1
    printed = capsys.readouterr().out
    assert "Falsifying example: x=0" in printed
    assert f"--hypothesis-seed={seeds[1]}" in printed


@pytest.mark.parametrize("arguments", [["-1"], ["x"], ["1", "2"]])
def test_other_arguments_are_refused(command: ModuleType, arguments: list[str]) -> None:
    assert command.main(arguments) == 2


def test_the_suite_draws_the_same_examples_in_every_run() -> None:
    suite = hypothesis.settings.get_profile("suite")
    assert (suite.derandomize, suite.database) == (True, None)
    search = hypothesis.settings.get_profile("search")
    assert search.derandomize is False
    assert search.database is not None

"""How the preparation speaks to the supervisor, and how the supervisor reads it."""

from __future__ import annotations

import io
import json
import os

import pytest

from gateway.supervisor.line_reader import LineReader
from gateway.supervisor.preparation import Progress, first_of, one_line


def test_a_finished_step_is_one_line_of_json() -> None:
    stream = io.StringIO()
    Progress(stream).run("Database", lambda: "up to date")
    step = json.loads(stream.getvalue())
    assert (step["step"], step["detail"]) == ("Database", "up to date")
    assert step["seconds"] >= 0


def test_a_step_that_fails_says_nothing_of_itself() -> None:
    stream = io.StringIO()

    def fail() -> str:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Progress(stream).run("Database", fail)
    assert stream.getvalue() == ""


def test_a_failure_is_one_line_whatever_it_holds() -> None:
    stream = io.StringIO()
    Progress(stream).fail("line one\nline two", see_log=True)
    assert stream.getvalue().count("\n") == 1
    assert json.loads(stream.getvalue()) == {"error": "line one\nline two", "see_log": True}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a.toml:3: no slug", "a.toml:3: no slug"),
        (
            "vendors.toml:3: slug is missing\nvendors.toml:9: url is missing\n",
            "vendors.toml:3: slug is missing (and 1 more)",
        ),
        (" \n", "no reason was given"),
    ],
)
def test_many_faults_come_down_to_the_first(text: str, line: str) -> None:
    assert first_of(text) == line


def test_a_message_loses_its_line_breaks() -> None:
    assert one_line("could not connect:\n\tis it running?\n") == "could not connect: is it running?"


def test_lines_are_handed_out_whole() -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as file:
        reader = LineReader(file)
        assert reader.read() == []
        os.write(write_end, b"one\ntw")
        assert reader.read() == ["one"]
        os.write(write_end, b"o\n")
        assert reader.read() == ["two"]
        os.close(write_end)
        assert reader.read() is None

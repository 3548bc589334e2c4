"""Tools found by words: in a small list, and with written questions among 2,000 tools of 50 vendors."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from proxy.protocol.tool_search import SearchIndex, index_of, ranked, words
from tests.factories.vendor_tools import definitions, questions

FOUND_SHARE = 0.9  # of the questions, among the first FIRST hits
FIRST = 5
_LETTERS = str.maketrans("0123456789", "abcdefghij")


def tool(name: str, description: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


def hits(index: SearchIndex, query: str) -> list[str]:
    return [name for _, name in ranked([index], query)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserByID", ["get", "user", "id"]),
        ("list_HTTPServers", ["list", "http", "server"]),
        ("companies closed, closing boxes", ["company", "clos", "clos", "box"]),
        ("what is the status of this", ["status"]),
        ("Größe 42", ["gr", "e", "42"]),
        ("", []),
    ],
)
def test_words_are_stems(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_names_titles_texts_and_arguments_are_read() -> None:
    schema = {"type": "object", "properties": {"serialNumber": {}}}
    tools = [
        tool("acme_alpha", title="Bring coffee"),
        tool("acme_beta", annotations={"title": "Pour tea"}),
        tool("acme_gamma", "Boils water."),
        tool("acme_delta", inputSchema=schema),
        {"name": "acme_bare"},
        {"name": "acme_odd", "title": 5, "description": None, "annotations": [], "inputSchema": {"properties": []}},
    ]
    index = index_of(tools, "Acme Kitchen")
    for query, name in (
        ("coffee", "alpha"),
        ("tea", "beta"),
        ("boiled", "gamma"),
        ("serial", "delta"),
        ("bare", "bare"),
    ):
        assert hits(index, query) == [f"acme_{name}"]
    assert len(hits(index, "kitchen")) == len(tools)
    assert hits(index, "nothing of that") == hits(index, "") == []


def test_long_texts_are_cut() -> None:
    index = index_of([tool("acme_long", f"{'x ' * 2_000}coffee"), tool("acme_short", "coffee")], "Acme")
    assert hits(index, "coffee") == ["acme_short"]
    assert hits(index, " ".join([*(f"word{chr(97 + n)}" for n in range(16)), "coffee"])) == []


def test_an_exact_name_is_first() -> None:
    index = index_of([tool("acme_list", "list list list"), tool("acme_list_all_lists", "list")], "Acme")
    assert hits(index, " ACME_LIST_ALL_LISTS ")[0] == "acme_list_all_lists"


def test_what_is_asked_to_be_done_decides_between_tools_of_one_thing() -> None:
    index = index_of([tool(f"acme_{act}_ticket") for act in ("get", "create", "update", "delete")], "Acme")
    asked = {"open a ticket": "create", "remove ticket 5": "delete", "which ticket": "get", "edit the ticket": "update"}
    assert {query: hits(index, query)[0] for query in asked} == {
        query: f"acme_{act}_ticket" for query, act in asked.items()
    }


def test_hits_name_the_index_that_they_are_of() -> None:
    ours, theirs = index_of([tool("a_ping")], "A"), index_of([tool("b_pong"), tool("b_ping")], "B")
    assert sorted(ranked([ours, theirs], "ping")) == [(0, "a_ping"), (1, "b_ping")]
    assert list(ranked([], "ping")) == []


def test_written_questions_find_their_tool() -> None:
    listed = definitions()
    assert [len(listed), sum(map(len, listed.values())), len(questions())] == [50, 2_000, 60]
    names = {each["name"] for tools in listed.values() for each in tools}
    indexes = [index_of(tools, vendor) for vendor, tools in listed.items()]
    missed = []
    for query, wanted in questions():
        assert wanted in names
        if wanted not in [name for _, name in islice(ranked(indexes, query), FIRST)]:
            missed.append(query)
    assert len(missed) <= round((1 - FOUND_SHARE) * 60), missed
    assert sum(index.kept_bytes for index in indexes) < 2_000_000


def test_long_runs_of_letters_are_within_the_estimate() -> None:
    longest = 4_000
    tools = [tool(f"acme_{n}", f"{n:04}".translate(_LETTERS) + "x" * (longest - 4)) for n in range(500)]
    index = index_of(tools, "Acme")
    assert sum(map(len, index.postings)) < index.kept_bytes
    assert max(map(len, words("y" * longest))) <= 40
    assert hits(index, tools[7]["description"])[0] == "acme_7"

"""Names that callers see: valid, unique, the same whatever the order, and always a way back."""

import random
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proxy.protocol.tool_names import ExposedTool, ExposedTools, cli_command, exposed_name

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")
PREFIXES = st.from_regex(r"[a-z][a-z0-9_]{0,15}", fullmatch=True)
AWKWARD = st.text("ab_-. é", min_size=1, max_size=4)
NAMES = st.sets(AWKWARD | st.text(min_size=1, max_size=100) | AWKWARD.map(lambda name: f"a_{name}"), max_size=20)


@pytest.mark.parametrize(
    ("vendor_name", "exposed"),
    [
        ("list_devices", "acme_list_devices"),
        ("acme_list_devices", "acme_list_devices"),
        ("acme__x", "acme__x"),
        ("acmelist", "acme_acmelist"),
        ("acme-list", "acme_acme-list"),
        ("ACME_list", "acme_ACME_list"),
        ("get.thing/now", "acme_get_thing_now"),
        ("acme_a.b", "acme_a_b"),
        ("größe", "acme_gr__e"),
        ("a-b", "acme_a-b"),
        ("x" * 59, "acme_" + "x" * 59),
    ],
)
def test_exposed_names(vendor_name: str, exposed: str) -> None:
    assert exposed_name("acme", vendor_name) == exposed


def test_long_names_are_cut_and_distinguished_by_a_hash() -> None:
    # sha256("x" * 60) begins with 42f2d9
    assert exposed_name("acme", "x" * 60) == "acme_" + "x" * 52 + "_42f2d9"
    longer = exposed_name("acme", "x" * 61)
    assert len(longer) == 64
    assert longer != exposed_name("acme", "x" * 60)


def test_a_name_that_is_no_unicode_gets_a_name_too() -> None:
    assert VALID.fullmatch(exposed_name("acme", "\ud800" * 70))


@pytest.mark.parametrize(
    ("vendor_name", "command"),
    [
        ("acme_list_devices", "list-devices"),
        ("acme-list-devices", "list-devices"),
        ("list_devices", "list-devices"),
        ("listDevices", "listDevices"),
        ("acme_acme_x", "acme-x"),
        ("acme_", "acme-"),
        ("a.b c", "a-b-c"),
    ],
)
def test_commands(vendor_name: str, command: str) -> None:
    assert cli_command("acme", vendor_name) == command


def test_a_prefix_of_two_words_is_dropped_however_it_is_spelled() -> None:
    assert {cli_command("acme_rmm", name) for name in ("acme_rmm_list", "acme-rmm-list", "acme-rmm_list")} == {"list"}


@settings(deadline=None)
@given(prefix=PREFIXES, names=NAMES, seed=st.integers())
@example(prefix="a", names={"a.", "a,", "a;", "a_", "a_a_", "a_a."}, seed=1)
@example(prefix="zeta", names={"x", "zeta_x", "zeta.x", "zeta_zeta_x"}, seed=2)
@example(prefix="acme", names={"list", "acme_list", "acme-list"}, seed=3)
def test_any_set_of_names_is_exposed_uniquely_validly_stably_and_reversibly(
    prefix: str, names: set[str], seed: int
) -> None:
    index = ExposedTools(prefix, names)
    exposed = [tool.exposed_name for tool in index.tools]
    assert exposed == sorted(set(exposed))
    assert all(VALID.fullmatch(name) and name.startswith(f"{prefix}_") for name in exposed)
    assert {tool.vendor_name for tool in index.tools} == names
    shuffled = sorted(names)
    random.Random(seed).shuffle(shuffled)
    assert ExposedTools(prefix, shuffled + shuffled[:2]).tools == index.tools
    assert all(index.by_exposed(tool.exposed_name) is tool for tool in index.tools)


@settings(deadline=None)
@given(prefix=PREFIXES, names=NAMES)
@example(prefix="acme", names={"list", "acme_list", "acme-list", "acme_list_"})
@example(prefix="a", names={"b.c", "a_b_c", "a.b.c", "b-c", "b_c"})
def test_every_spelling_of_a_tool_means_that_tool_on_the_command_line(prefix: str, names: set[str]) -> None:
    index = ExposedTools(prefix, names)
    assert len({tool.command for tool in index.tools}) == len(names)
    for tool in index.tools:
        for spelling in (tool.vendor_name, tool.exposed_name, tool.command):
            assert index.by_cli_name(spelling) is tool


def test_the_first_by_vendor_name_keeps_a_name_that_two_would_get() -> None:
    # sha256("a/b") begins with c14cdd; "." sorts before "/"
    assert ExposedTools("acme", ["a/b", "a.b"]).tools == (
        ExposedTool("a.b", "acme_a_b", "a-b"),
        ExposedTool("a/b", "acme_a_b_c14cdd", "acme_a_b_c14cdd"),
    )


def test_the_hash_of_a_long_name_takes_the_place_of_its_end() -> None:
    first, second = "x" * 58 + ".", "x" * 58 + "/"
    names = {tool.vendor_name: tool.exposed_name for tool in ExposedTools("acme", [first, second]).tools}
    assert names[first] == "acme_" + "x" * 58 + "_"
    assert names[second][:57] == "acme_" + "x" * 52
    assert len(names[second]) == 64


def test_a_name_that_is_fine_as_it_is_stays() -> None:
    names = {tool.vendor_name: tool.exposed_name for tool in ExposedTools("zeta", ["x", "zeta_x"]).tools}
    assert names["zeta_x"] == "zeta_x"
    assert names["x"].startswith("zeta_x_")


def test_a_vendor_that_sets_out_to_collide_gets_another_hash() -> None:
    squatted = ExposedTools("acme", ["a/b", "a.b"]).tools[1].exposed_name
    names = {tool.vendor_name: tool.exposed_name for tool in ExposedTools("acme", ["a/b", "a.b", squatted]).tools}
    assert names[squatted] == squatted
    assert VALID.fullmatch(names["a/b"])
    assert len(set(names.values())) == 3


def test_a_command_that_is_another_tools_name_is_not_given_away() -> None:
    index = ExposedTools("acme", ["acme_list", "list"])
    commands = {tool.vendor_name: tool.command for tool in index.tools}
    assert commands == {"acme_list": "acme_list", "list": "list"}


INDEX = ExposedTools("acme", ["acme_list", "get.one", "_odd", "y" * 80])


@pytest.mark.parametrize(
    ("name", "vendor_name"),
    [
        ("acme_list", "acme_list"),
        ("acme__list", "acme_list"),
        ("acme__acme_list", "acme_list"),
        ("acme_get_one", "get.one"),
        ("acme__get_one", "get.one"),
        ("acme__get.one", "get.one"),
        ("acme__odd", "_odd"),
        ("acme__" + "y" * 80, "y" * 80),
    ],
)
def test_names_that_mcp_callers_may_use(name: str, vendor_name: str) -> None:
    tool = INDEX.by_exposed(name)
    assert tool is not None
    assert tool.vendor_name == vendor_name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "list",
        "get.one",
        "acme_get.one",
        "ACME_list",
        "acme_list ",
        " acme_list",
        "acme_List",
        "acme_lıst",
        "acme",
        "acme_",
        "acme__",
        "acme___list",
        "globex_list",
        "list\x00",
        "аcme_list",
    ],
)
def test_names_that_only_look_like_a_tool(name: str) -> None:
    assert INDEX.by_exposed(name) is None


@pytest.mark.parametrize(
    ("name", "vendor_name"),
    [
        ("list", "acme_list"),
        ("get-one", "get.one"),
        ("get.one", "get.one"),
        ("acme_get_one", "get.one"),
        ("acme__list", "acme_list"),
        ("_odd", "_odd"),
        ("-odd", "_odd"),
    ],
)
def test_names_that_cli_callers_may_use(name: str, vendor_name: str) -> None:
    tool = INDEX.by_cli_name(name)
    assert tool is not None
    assert tool.vendor_name == vendor_name


@pytest.mark.parametrize("name", ["", "List", "list ", "get_one", "acme-list", "get-One"])
def test_names_that_mean_nothing_on_the_command_line(name: str) -> None:
    assert INDEX.by_cli_name(name) is None


def test_the_vendors_own_name_leads_to_the_tool_too() -> None:
    tool = INDEX.by_cli_name("get.one")
    assert tool is not None
    assert (tool.vendor_name, tool.exposed_name) == ("get.one", "acme_get_one")


def test_a_name_that_needs_no_cleaning_goes_before_one_that_does() -> None:
    index = ExposedTools("acme", ["issues.list", "issues_list"])
    for spelling in ("acme_issues_list", "acme__issues_list", "issues_list", "issues-list"):
        tool = index.by_cli_name(spelling)
        assert tool is not None
        assert tool.vendor_name == "issues_list"
        assert index.by_exposed(spelling) in (tool, None)
    (other,) = [tool for tool in index.tools if tool.vendor_name == "issues.list"]
    assert other.exposed_name.startswith("acme_issues_list_")
    for spelling in ("acme__issues.list", other.exposed_name):
        assert index.by_exposed(spelling) is index.by_cli_name(spelling) is other


_PIECES = st.sampled_from(["a", "a_", "a__", "b", "_", ".", "-", "c"])
CONFUSABLE = st.sets(st.lists(_PIECES, min_size=1, max_size=4).map("".join), min_size=1, max_size=12)


@settings(deadline=None)
@given(names=CONFUSABLE, others=CONFUSABLE)
@example(names={"issues.list", "issues_list"}, others={"issues_list"})
@example(names={"a__b.c", "b.c", "b_c"}, others={"b.c"})
@example(names={"_b", "b"}, others={"b"})
def test_every_spelling_means_the_same_tool_everywhere_and_the_exact_one_first(
    names: set[str], others: set[str]
) -> None:
    index = ExposedTools("a", names)
    by_vendor_name = {tool.vendor_name: tool for tool in index.tools}
    listed = {tool.exposed_name: tool for tool in index.tools}
    spellings = {f"{before}{name}" for name in names | others for before in ("", "a_", "a__")}
    for spelling in spellings | set(listed):
        tool = index.by_exposed(spelling)
        if spelling in listed:
            assert tool is listed[spelling], "what the list shows under a name runs under it"
        if tool is not None:
            assert index.by_cli_name(spelling) is tool
    for name in names:
        spelling = f"a__{name}"
        if spelling not in listed and spelling not in by_vendor_name:
            assert index.by_exposed(spelling) is by_vendor_name[name]
        as_it_is = exposed_name("a", name)
        if as_it_is in (name, f"a_{name}") and as_it_is not in names - {name}:
            assert by_vendor_name[name].exposed_name == as_it_is

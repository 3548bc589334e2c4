"""Lines: where a key stands, in every way TOML lets one write it."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from gateway.catalog.key_lines import Path, key_lines, line_of

TEXT = '''# a comment with [[vendor]] and = in it
[[vendor]]
slug = "a"          # [[vendor]]
help = """
[[vendor]]
slug = "not a key"
"""
options = [
  "x]",   # ]
  "y",
]
[[vendor.headers]]
name = "One"
[[vendor.headers]]
name = 'T"wo'
"quoted key" = 1

[[vendor]]
slug = "b"
[vendor.validation]
tool = "t"
[vendor.validation.arguments]
deep.er = 1
[vendor.tools."a.b = c"]
read_only = true
'''


def test_every_key_is_found_on_its_line() -> None:
    tomllib.loads(TEXT)
    lines = key_lines(TEXT)
    expected: dict[Path, int] = {
        ("vendor", 0): 2,
        ("vendor", 0, "slug"): 3,
        ("vendor", 0, "help"): 4,
        ("vendor", 0, "options"): 8,
        ("vendor", 0, "headers", 0): 12,
        ("vendor", 0, "headers", 0, "name"): 13,
        ("vendor", 0, "headers", 1, "name"): 15,
        ("vendor", 0, "headers", 1, "quoted key"): 16,
        ("vendor", 1): 18,
        ("vendor", 1, "slug"): 19,
        ("vendor", 1, "validation"): 20,
        ("vendor", 1, "validation", "tool"): 21,
        ("vendor", 1, "validation", "arguments", "deep", "er"): 23,
        ("vendor", 1, "tools", "a.b = c"): 24,
        ("vendor", 1, "tools", "a.b = c", "read_only"): 25,
    }
    assert {path: line_of(path, lines) for path in expected} == expected


def test_an_absent_key_has_the_line_of_what_is_around_it() -> None:
    lines = key_lines(TEXT)
    assert line_of(("vendor", 0, "headers", 1, "value"), lines) == 14
    assert line_of(("vendor", 1, "url"), lines) == 18
    assert line_of(("nothing",), lines) == 1


def test_inline_tables_have_the_line_of_their_key() -> None:
    text = 'x = 1\nvendor = [\n  { slug = "a" },\n]\n'
    tomllib.loads(text)
    assert line_of(("vendor", 0, "slug"), key_lines(text)) == 2


def test_windows_line_ends_count_once() -> None:
    text = "[[vendor]]\r\nslug = \"a\"\r\nhelp = '''\r\n= [\r\n'''\r\nname = \"b\""
    tomllib.loads(text)
    lines = key_lines(text)
    assert line_of(("vendor", 0, "name"), lines) == 6


BARE = st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True)
STRINGS = st.text(st.sampled_from("ab=[]{}#'\"\\\n ,."), max_size=12)


def _basic(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _long(text: str) -> str:
    return '"""\n' + text.replace("\\", "\\\\").replace('"', '\\"') + '"""'


VALUES = st.one_of(
    STRINGS.map(_basic),
    STRINGS.map(_long),
    st.lists(STRINGS.map(_basic), max_size=3).map(lambda each: "[\n" + ",\n".join(each) + "]"),
    st.dictionaries(BARE, STRINGS.map(_basic), max_size=2).map(
        lambda each: "{" + ", ".join(f"{key} = {value}" for key, value in each.items()) + "}"
    ),
)


@given(st.lists(st.dictionaries(st.one_of(BARE, STRINGS.map(_basic)), VALUES, max_size=4), max_size=4))
def test_any_text_that_parses_is_indexed(tables: list[dict[str, str]]) -> None:
    text, expected = "", []
    for number, table in enumerate(tables):
        expected.append((("vendor", number), text.count("\n") + 1))
        text += "[[vendor]] # [x]\n"
        for key, value in table.items():
            name = next(iter(tomllib.loads(f"{key} = 0")))
            if not any(path == ("vendor", number, name) for path, _ in expected):
                expected.append((("vendor", number, name), text.count("\n") + 1))
                text += f"  {key} = {value} # = ]\n"
    tomllib.loads(text)
    lines = key_lines(text)
    assert [(path, line_of(path, lines)) for path, _ in expected] == expected

"""JSON that two parsers could read differently is refused, and everything else comes through unchanged."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.lib import strict_json
from gateway.lib.strict_json import MAX_CONTAINERS, MAX_INTEGER_DIGITS, StrictJSONError, entry_sizes, loads

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def holds_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any(holds_nul(each) for pair in value.items() for each in pair)
    if isinstance(value, list):
        return any(map(holds_nul, value))
    return isinstance(value, str) and "\0" in value


def reason_for(body: bytes) -> str:
    with pytest.raises(StrictJSONError) as refused:
        loads(body)
    return refused.value.reason


@settings(deadline=None)
@given(document=DOCUMENTS, ascii_only=st.booleans())
@example(document={"a": "\\u0000", "b": "\\\\u0000"}, ascii_only=True)
@example(document={"tool": "a:b", "::": [":", {":": ":"}]}, ascii_only=False)
def test_what_json_writes_is_read_back(document: Any, ascii_only: bool) -> None:
    body = json.dumps(document, ensure_ascii=ascii_only).encode()
    if holds_nul(document):
        assert reason_for(body) == "a string contains NUL"
    else:
        assert loads(body) == document


@settings(deadline=None)
@given(
    pairs=st.lists(st.tuples(st.text(":ab\\u03", max_size=2), st.text(":ab\\u03", max_size=8)), max_size=5),
    escape=st.booleans(),
)
@example(pairs=[("a", "::"), ("a", "")], escape=True)
def test_a_key_given_twice_is_always_found(pairs: list[tuple[str, str]], escape: bool) -> None:
    body = "{" + ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in pairs) + "}"
    if escape:  # one colon inside the strings more than the body shows
        body = body[:-1] + (',"z":"\\u003a"}' if pairs else "}")
    if len({key for key, _ in pairs}) < len(pairs):
        assert reason_for(body.encode()) == "a key is given twice"
    else:
        assert loads(body.encode()) == json.loads(body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"tool":"ok","tool":"denied"}',
        b'{"tool":"ok","t\\u006fol":"denied"}',
        b'{"a":1,"a":"\\u003a"}',
        b'{"a":"\\u003A","b":{"x":1,"x":1}}',
        b'[{"a":[{"b":"http://x","b":null}]}]',
        '{"é":1,"\\u00e9":2}'.encode(),
    ],
)
def test_a_key_given_twice(body: bytes) -> None:
    assert reason_for(body) == "a key is given twice"


@pytest.mark.parametrize(
    "body",
    [
        b'{"tool":"a","Tool":"b","tool ":"c"}',
        b'{"a":{"a":1},"b":{"a":1}}',
        b'[{"a":1},{"a":1}]',
        b'{"a":"x:y","b:":"\\u003a\\u003A"}',
    ],
)
def test_keys_that_only_look_alike_are_kept(body: bytes) -> None:
    assert loads(body) == json.loads(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the body is empty"),
        (b" \r\n\t", "the body is empty"),
        (b"\xef\xbb\xbf{}", "the body starts with a byte order mark"),
        (b'{"a":"\xff"}', "the body is not UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "the body is not UTF-8"),
        (b'{"\xc0\x80":1}', "the body is not UTF-8"),
        (b"{} x", "the body is not JSON: trailing characters (byte 4)"),
        (b"1e999", "a number is out of range"),
        (b"[-1e999]", "a number is out of range"),
    ],
)
def test_bodies_that_are_no_document(body: bytes, reason: str) -> None:
    assert reason_for(body) == reason


@pytest.mark.parametrize(
    "body",
    [
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"{bad",
        b"{'a':1}",
        b"[1,]",
        b'{"a":1,}',
        b"01",
        b"+1",
        b'"\x01"',
        b"tru",
        b'"\\ud800"',
        b'"\\udc00 and more"',
        b'"\\ud800\\ud800"',
        b'{"\\udfff":1}',
        b"{}{}",
        b"{}\x00",
        b"\xff\xfe{\x00}\x00",
    ],
)
def test_bodies_that_are_not_json(body: bytes) -> None:
    assert reason_for(body).startswith("the body is not JSON: ")


def test_the_reason_never_repeats_the_body() -> None:
    assert "s3cret" not in reason_for(b'{"password":"s3cret"')


@pytest.mark.parametrize("body", [b'"\\u0000"', b'["a\\u0000b"]', b'{"\\u0000":1}', b'"\\\\\\u0000"', b'"\\n\\u0000"'])
def test_nul_is_refused(body: bytes) -> None:
    assert reason_for(body) == "a string contains NUL"


def test_an_escaped_backslash_before_u0000_is_text() -> None:
    assert loads(rb'"\\u0000 \\\\u0000 \\u\\u0000"') == r"\u0000 \\u0000 \u\u0000"


@pytest.mark.parametrize("sign", ["", "-"])
def test_integers_end_at_64_digits(sign: str) -> None:
    longest = f"{sign}{'9' * MAX_INTEGER_DIGITS}".encode()
    assert loads(b'{"a":[%b]}' % longest) == {"a": [int(longest)]}
    assert reason_for(b'{"a":[%b9]}' % longest) == "an integer has more than 64 digits"
    assert reason_for(longest + b"9") == "an integer has more than 64 digits"


def test_a_million_digits_are_refused_at_once() -> None:
    assert reason_for(b"1" * 1_000_000) == "a number is out of range"


def test_long_runs_of_digits_that_are_no_integers_pass() -> None:
    digits = "7" * 100
    assert loads(f'{{"{digits}": "{digits}", "pi": 3.{digits}}}'.encode()) == {
        digits: digits,
        "pi": float(f"3.{digits}"),
    }


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_depth_ends_at_64(opening: bytes, closing: bytes) -> None:
    deepest = opening * 64 + b"1" + closing * 64
    assert loads(deepest) == json.loads(deepest)
    assert reason_for(opening + deepest + closing) == "the body is nested too deeply"


def test_depth_ends_at_64_beside_flat_brackets_too() -> None:
    assert loads(b"[[]," + b"[" * 63 + b"]" * 64) is not None
    assert reason_for(b"[[]," + b"[" * 64 + b"]" * 65) == "the body is nested too deeply"


def test_an_empty_container_counts_as_a_level() -> None:
    assert loads(b"[" * 64 + b"]" * 64) is not None
    assert reason_for(b"[" * 65 + b"]" * 65) == "the body is nested too deeply"


def test_the_depth_is_the_callers_choice() -> None:
    assert loads(b'{"a":[1]}', max_depth=2) == {"a": [1]}
    with pytest.raises(StrictJSONError, match="nested too deeply"):
        loads(b'{"a":[[1]]}', max_depth=2)


@pytest.mark.parametrize("body", [b"[" * 100_000, b"[" * 10_000 + b"]" * 10_000, b'{"a":' * 100_000])
def test_deep_nesting_never_exhausts_the_stack(body: bytes) -> None:
    assert reason_for(body) == "the body is nested too deeply"


def test_many_flat_brackets_are_no_depth() -> None:
    assert loads(b'[%b "[[[[{{{{"]' % (b"[]," * 500)) == [[]] * 500 + ["[[[[{{{{"]


UNITS = [b"[],", b"{},", b"[[[[[]]]]],", b'{"a":1},', b'"[{",']


@pytest.mark.parametrize("unit", UNITS)
def test_an_absurd_structure_is_refused_before_it_is_parsed(unit: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"[%b1]" % (unit * (4 * 1024 * 1024 // len(unit)))
    monkeypatch.setattr(strict_json, "_parse", lambda _: pytest.fail("parsing it takes a second"))
    assert reason_for(body) == f"the body has more than {MAX_CONTAINERS} objects and arrays"


def test_as_many_containers_as_there_may_be_are_read() -> None:
    assert len(loads(b"[%b1]" % (b"[]," * (MAX_CONTAINERS - 1)))) == MAX_CONTAINERS  # type: ignore[arg-type]
    assert len(loads(b'["%b"]' % (b"x" * 4_000_000))[0]) == 4_000_000  # type: ignore[index]


def test_the_bytes_of_each_entry() -> None:
    assert entry_sizes(b' [ {"a" : 1} ,2,"\xc3\xa4", [ ] ] ') == [9, 1, 4, 3]
    assert entry_sizes(b"[]") == []

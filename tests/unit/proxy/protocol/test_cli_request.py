"""The body of a CLI call: valid ones, and the refusals of others."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.protocol.cli_request import CliRequest, CliRequestError, parse_cli_request

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("body", "call"),
    [
        ({"tool": "list-devices", "args": {"limit": 5}}, CliRequest("list-devices", {"limit": 5})),
        ({"tool": "whoami"}, CliRequest("whoami", {})),
        ({"tool": "t" * 128, "args": {}}, CliRequest("t" * 128, {})),
        ({"tool": "t", "Tool": 5, "unknown": [1]}, CliRequest("t", {})),
        ({"tool": " t "}, CliRequest(" t ", {})),
    ],
)
def test_calls(body: dict[str, Any], call: CliRequest) -> None:
    assert parse_cli_request(body) == call


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (None, "The body must be a JSON object."),
        ([{"tool": "t"}], "The body must be a JSON object."),
        ("t", "The body must be a JSON object."),
        ({}, "The field 'tool' is required."),
        ({"Tool": "t", "args": {}}, "The field 'tool' is required."),
        ({"tool": ""}, "The field 'tool' must be the name of a tool."),
        ({"tool": 123}, "The field 'tool' must be the name of a tool."),
        ({"tool": None}, "The field 'tool' must be the name of a tool."),
        ({"tool": ["t"]}, "The field 'tool' must be the name of a tool."),
        ({"tool": "t" * 129}, "The field 'tool' must not be longer than 128 characters."),
        ({"tool": "t", "args": []}, "The field 'args' must be an object."),
        ({"tool": "t", "args": None}, "The field 'args' must be an object."),
        ({"tool": "t", "args": "{}"}, "The field 'args' must be an object."),
    ],
)
def test_refusals(body: object, message: str) -> None:
    with pytest.raises(CliRequestError) as refused:
        parse_cli_request(body)
    assert refused.value.message == str(refused.value) == message


@settings(deadline=None)
@given(body=JSON | st.fixed_dictionaries({}, optional={"tool": JSON, "args": JSON}))
def test_any_json_is_a_call_or_refused(body: Any) -> None:
    try:
        call = parse_cli_request(body)
    except CliRequestError:
        assert not (
            isinstance(body, dict) and isinstance(body.get("tool"), str) and body["tool"] and "args" not in body
        )
    else:
        assert call == CliRequest(body["tool"], body.get("args", {}))

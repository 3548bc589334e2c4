"""Template grammar: placeholders in, values out, nothing else understood."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.catalog.template_grammar import FieldError, Placeholder, TemplateError, parse, placeholders, render

LITERALS = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]), max_size=20)
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,9}", fullmatch=True)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def test_parse_splits_text_and_placeholders() -> None:
    assert parse("Token token={token}") == ("Token token=", Placeholder(("token",)))
    assert parse("{b64:user:token}") == (Placeholder(("user", "token"), base64=True),)
    assert parse("") == ()


def test_placeholders_are_named_once_in_order() -> None:
    assert placeholders("{b}{a}{b64:a:c}") == ("b", "a", "c")
    assert placeholders("no braces") == ()


@pytest.mark.parametrize(
    "template",
    ["{", "}", "{}", "{a", "a}", "{{a}}", "{a b}", "{1a}", "{b64:}", "{b64:a:}", "{b65:a}", "{a:b}", "{é}", "{a\n}"],
)
def test_other_braces_are_refused(template: str) -> None:
    with pytest.raises(TemplateError):
        parse(template)


def test_render_fills_in_values() -> None:
    assert render("Bearer {token}", {"token": "t"}) == "Bearer t"
    assert render("Basic {b64:user:token}", {"user": "me@x", "token": "a:b"}) == "Basic bWVAeDphOmI="
    assert render("{b64:one}", {"one": "é"}) == base64.b64encode("é".encode()).decode()


def test_render_does_not_read_placeholders_in_values() -> None:
    assert render("{a}{b}", {"a": "{b}", "b": "x"}) == "{b}x"


def test_render_refuses_a_missing_field_and_names_it() -> None:
    with pytest.raises(FieldError) as caught:
        render("{token}", {})
    assert (caught.value.field, caught.value.message) == ("token", "is missing")


def test_a_colon_in_the_user_name_is_refused_without_telling_the_value() -> None:
    with pytest.raises(FieldError) as caught:
        render("{b64:user:token}", {"user": "top:secret", "token": "t"})
    assert caught.value.field == "user"
    assert "secret" not in str(caught.value)


def test_a_lone_surrogate_is_refused_and_leaves_no_trace_of_the_value() -> None:
    with pytest.raises(FieldError) as caught:
        render("{b64:user:token}", {"user": "u", "token": "hidden\ud800"})
    assert "hidden" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@given(before=LITERALS, name=NAMES, value=VALUES, after=LITERALS)
def test_literal_text_survives_around_any_value(before: str, name: str, value: str, after: str) -> None:
    assert render(f"{before}{{{name}}}{after}", {name: value}) == before + value + after


@given(user=VALUES.filter(lambda text: ":" not in text), token=VALUES)
def test_a_server_reads_the_same_pair_back(user: str, token: str) -> None:
    encoded = render("{b64:user:token}", {"user": user, "token": token})
    assert base64.b64decode(encoded).decode().split(":", 1) == [user, token]

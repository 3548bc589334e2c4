"""Pure: templates of addresses, as RFC 6570 has them, and whether an address is made of one.

Takes a millisecond at most for any template and address: values are searched once and never tried again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

# Longer ones, and templates of more expressions, match nothing: the time of a search grows with their product.
MAX_ADDRESS_CHARACTERS: Final = 1_024
MAX_TEMPLATE_CHARACTERS: Final = 512
MAX_EXPRESSIONS: Final = 32

_expression = re.compile(r"\{[^{}]*\}")
_scheme = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:").match
# The first character of what these expressions stand for. The others begin with a value.
_MARKED: Final = "#./;?&"
_SEPARATORS: Final = {"/": "/", ".": ".", ";": ";", "?": "&", "&": "&"}  # between values; of others a comma
_NOT_IN_SIMPLE: Final = frozenset("/\\?#")
_separators = re.compile(r"[/\\?#]").split
_length = re.compile(r":\d+\Z")


def is_template(text: str) -> bool:
    """An address has no braces."""
    return "{" in text or "}" in text


def fault_in(template: str) -> str:
    """Why no address is made of the template; "" if some are."""
    if len(template) > MAX_TEMPLATE_CHARACTERS:
        return f"it has more than {MAX_TEMPLATE_CHARACTERS} characters"
    if not _scheme(template.partition("{")[0]):
        return "it must begin with a scheme"
    if len(_expression.findall(template)) > MAX_EXPRESSIONS:
        return f"it has more than {MAX_EXPRESSIONS} expressions"
    if any(is_template(literal) for literal in _expression.split(template)):
        return "a brace has no counterpart"
    return ""


def values_in(template: str, address: str, *, at_marks: bool = False) -> list[tuple[str, str]] | None:
    """Each expression with the text that it stands for; None if the address does not have the template's form.

    A value is no longer than `{name:3}` has it. Each ends before the first occurrence of the text that follows it.
    Without such a text it is empty, or with `at_marks` ends before the mark of an expression such as `{?q}`.
    """
    if len(template) > MAX_TEMPLATE_CHARACTERS or len(address) > MAX_ADDRESS_CHARACTERS:
        return None
    if not address.startswith(template.partition("{")[0]):
        return None
    literals, expressions = _parts(template)
    first, *rest = literals
    if ":" not in first or len(expressions) > MAX_EXPRESSIONS or not address.startswith(first):
        return None
    place = len(first)
    found: list[tuple[str, str]] = []
    for position, (expression, literal) in enumerate(zip(expressions, rest, strict=True)):
        if position == len(rest) - 1:
            end = len(address) - len(literal)
            if end < place or not address.endswith(literal):
                return None
        elif literal or not at_marks:
            end = address.find(literal, place)
            if end < 0:
                return None
        else:
            mark = expressions[position + 1][1:2]
            marked = address.find(mark, place) if mark in _MARKED else place
            end = marked if marked >= 0 else len(address)
        if not _is_short_enough(expression, address[place:end]):
            return None
        found.append((expression, address[place:end]))
        place = end + len(literal)
    return found if place == len(address) else None


@lru_cache(maxsize=1_000)
def _lengths(expression: str) -> tuple[tuple[str, int | None], ...]:
    """The names in the expression, each with the most characters of its value; () if all are without."""
    found = [name.partition(":") for name in expression.lstrip("{+" + _MARKED).rstrip("}").split(",")]
    lengths = tuple((name, int(length) if length.isdecimal() else None) for name, _, length in found)
    return lengths if any(most is not None for _, most in lengths) else ()


def _is_short_enough(expression: str, text: str) -> bool:
    """Whether the lengths of RFC 6570, 2.4.1 hold: of characters, before they were encoded."""
    lengths = _lengths(expression)
    if not lengths or not text:
        return True
    operator = expression[1]
    text = text.removeprefix(operator) if operator in _MARKED else text
    if len(lengths) == 1 and operator not in "/;?&":  # one value, which may have a comma or a dot
        return _fits(text, lengths[0][1])
    values = text.split(_SEPARATORS.get(operator, ","))
    if operator in ";?&":
        most_of = dict(lengths)
        pairs = (pair.partition("=") for pair in values)
        return all(_fits(value, most_of.get(name)) for name, _, value in pairs)
    if any(most is None for _, most in lengths):
        return True  # of a name without a length there may be any number of values
    # Names without a value are left out: each value is of the first name that is left and long enough.
    left = iter(lengths)
    return all(any(_fits(value, most) for _, most in left) for value in values)


def _fits(value: str, most: int | None) -> bool:
    return most is None or len(unquote(value)) <= most


@lru_cache(maxsize=1_000)
def _parts(template: str) -> tuple[list[str], list[str]]:
    """The literals, and the expressions between them. Not to be changed."""
    return _expression.split(template), _expression.findall(template)


def is_made_of(template: str, address: str) -> bool:
    """Whether the address is an expansion of the template: for rights, so a doubtful one is none.

    A simple expression has no slash, question mark or number sign; `{+any}` has any text; `{?q}` and the like begin
    with their mark, and have the names that stand in them. No segment leads upwards, not even behind a question mark:
    not all vendors know what a query is. An address without a scheme, and a template itself, is made of none.
    """
    # Most addresses end here: lists are looked through entry by entry.
    if not address.startswith(template.partition("{")[0]) or is_template(address) or _allows_nothing(template):
        return False
    found = values_in(template, address, at_marks=True)
    return (
        found is not None
        and all(_may_stand_for(expression, value) for expression, value in found)
        and not climbs(_separators, address)
    )


def climbs(segments: Callable[[str], Iterable[str]], address: str) -> bool:
    """Whether a segment leads upwards, in any spelling. A vendor that decodes twice must not be led astray."""
    for _ in range(3):
        if any(segment in (".", "..") for segment in segments(address)):
            return True
        address = unquote(address)
    return False


@lru_cache(maxsize=1_000)
def _allows_nothing(template: str) -> bool:
    return not is_template(template) or bool(fault_in(template))


def _may_stand_for(expression: str, value: str) -> bool:
    operator = expression[1:2]
    if operator == "+" or not value:
        return True
    if operator and operator in _MARKED and value[0] != operator:
        return False
    if operator == "#":
        return True
    if operator in ("?", "&", ";") and not _has_names_of(expression, value):
        return False
    allowed = {"/": "/", "?": "?", "&": "?"}.get(operator, "")
    return not (_NOT_IN_SIMPLE - set(allowed)) & set(value)


def _has_names_of(expression: str, value: str) -> bool:
    """Whether each pair of `{?page}` and the like is of a name in it. `{?any*}` has any."""
    names = expression[2:-1].split(",")
    pairs = value[1:].split(";" if value[0] == ";" else "&")
    known = {_length.sub("", name) for name in names}
    return any(name.endswith("*") for name in names) or all(pair.partition("=")[0] in known for pair in pairs)

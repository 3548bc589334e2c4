"""Pure: templates of addresses, as RFC 6570 has them, and whether an address is made of one.

Takes a millisecond at most, whatever is written: values are searched once and never tried again.
"""

from __future__ import annotations

import re
from typing import Final

# Longer ones, and templates of more expressions, match nothing: the time of a search grows with their product.
MAX_ADDRESS_CHARACTERS: Final = 1_024
MAX_TEMPLATE_CHARACTERS: Final = 512
MAX_EXPRESSIONS: Final = 32

_expression = re.compile(r"\{[^{}]*\}")
_scheme = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:").match
# The first character of what these expressions stand for. The others begin with a value.
_MARKED: Final = "#./;?&"
_NOT_IN_SIMPLE: Final = frozenset("/\\?#")


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

    Each value ends before the first occurrence of the text that follows it. Without such a text it is empty, or with
    `at_marks` ends before the mark of an expression such as `{?q}`.
    """
    if len(template) > MAX_TEMPLATE_CHARACTERS or len(address) > MAX_ADDRESS_CHARACTERS:
        return None
    if not address.startswith(template.partition("{")[0]):
        return None
    literals, expressions = _expression.split(template), _expression.findall(template)
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
        found.append((expression, address[place:end]))
        place = end + len(literal)
    return found if place == len(address) else None


def is_made_of(template: str, address: str) -> bool:
    """Whether the address is an expansion of the template: for rights, so a doubtful one is none.

    A simple expression has no slash, question mark or number sign; `{+any}` has any text; `{?q}` and the like begin
    with their mark. An address without a scheme, and a template itself, is made of none.
    """
    if is_template(address) or not is_template(template) or fault_in(template):
        return False
    found = values_in(template, address, at_marks=True)
    return found is not None and all(_may_stand_for(expression[1:2], value) for expression, value in found)


def _may_stand_for(operator: str, value: str) -> bool:
    if operator == "+" or not value:
        return True
    if operator == "/":
        return value[0] == "/" and not {"\\", "?", "#"} & set(value)
    if operator in ("?", "&"):
        return value[0] == operator and not {"/", "\\", "#"} & set(value)
    if operator == "#":
        return value[0] == "#"
    if operator and operator in _MARKED and value[0] != operator:
        return False
    return not _NOT_IN_SIMPLE & set(value)

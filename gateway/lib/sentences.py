"""Pure: English sentences that pages may show in another language. Answers for machines use them as they are."""

from __future__ import annotations

from collections.abc import Mapping


class Sentence(str):
    """A sentence with values filled in. `template`: the message, with named placeholders; `values`: texts by name."""

    __slots__ = ("template", "values")

    template: str
    values: Mapping[str, object]


def plain(value: object) -> str:
    """The hook of encoders, which know no subclass of `str`. Raises: NotImplementedError."""
    if isinstance(value, Sentence):
        return str(value)
    raise NotImplementedError


def sentence(template: str, **values: object) -> str:
    """Marks the template for the catalogs. Without values it is a plain text."""
    if not values:
        return template
    text = Sentence(template % values)
    text.template, text.values = template, values
    return text

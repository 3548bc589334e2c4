"""Pure: the grammar of `{field}` and `{b64:field:field}` in catalog templates."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_BRACED = re.compile(r"\{([^{}]*)\}")


class TemplateError(ValueError):
    pass


class FieldError(ValueError):
    """A credential field's value cannot be used. Neither message nor attributes hold the value."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class Placeholder:
    """`{name}`, or with `base64` the joined pair `{b64:name:name}`."""

    names: tuple[str, ...]
    base64: bool = False


@lru_cache(maxsize=2048)  # templates come from the catalog only, so their number is bounded
def parse(template: str) -> tuple[str | Placeholder, ...]:
    """Literals and placeholders in order. Raises: TemplateError for a stray brace or a bad field name."""
    parts: list[str | Placeholder] = []
    position = 0
    for match in _BRACED.finditer(template):
        parts.append(_literal(template[position : match.start()]))
        parts.append(_placeholder(match.group(1)))
        position = match.end()
    parts.append(_literal(template[position:]))
    return tuple(part for part in parts if part != "")


def placeholders(template: str) -> tuple[str, ...]:
    """Distinct field names in order of first use. Raises: TemplateError."""
    names = (name for part in parse(template) if isinstance(part, Placeholder) for name in part.names)
    return tuple(dict.fromkeys(names))


def render(template: str, fields: Mapping[str, str]) -> str:
    """Raises: TemplateError; FieldError when a field is missing or makes a joined pair ambiguous. Spec: contract §4"""
    return "".join(part if isinstance(part, str) else _filled(part, fields) for part in parse(template))


def value_of(name: str, fields: Mapping[str, str]) -> str:
    """Raises: FieldError when the field is missing."""
    if name not in fields:
        raise FieldError(name, "is missing")
    return fields[name]


def _literal(text: str) -> str:
    if "{" in text or "}" in text:
        raise TemplateError("a brace may only stand around a field name, as in {apiKey}")
    return text


def _placeholder(inside: str) -> Placeholder:
    is_base64 = inside.startswith("b64:")
    names = tuple(inside.removeprefix("b64:").split(":")) if is_base64 else (inside,)
    for name in names:
        if not FIELD_NAME.fullmatch(name):
            raise TemplateError("{" + inside + "} is not {field} or {b64:field:field}")
    return Placeholder(names=names, base64=is_base64)


def _filled(placeholder: Placeholder, fields: Mapping[str, str]) -> str:
    values = [value_of(name, fields) for name in placeholder.names]
    if not placeholder.base64:
        return values[0]
    for name, value in zip(placeholder.names[:-1], values[:-1], strict=True):
        if ":" in value:  # RFC 7617 §2: the server would split the pair at this colon and read another user name
            raise FieldError(name, "may not contain ':'")
    try:
        return base64.b64encode(":".join(values).encode()).decode("ascii")
    except UnicodeEncodeError:  # a lone surrogate; the error itself would hold the value, so it is not chained
        raise FieldError(placeholder.names[-1], "has characters that are not allowed") from None

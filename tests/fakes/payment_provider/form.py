"""Reads form-encoded parameters with brackets, and refuses those that the documentation does not know."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.fakes.payment_provider.errors import empty, invalid, missing, unknown

_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
_PART = re.compile(r"\[([^\[\]]*)\]")
_TRUTH = {"true": True, "false": False}


def parsed(text: str) -> dict[str, Any]:
    """`a[b]=1&c[0][d]=2&e[]=3` as {"a": {"b": "1"}, "c": [{"d": "2"}], "e": ["3"]}."""
    tree: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=1_000):
        found = _NAME.fullmatch(name)
        if found is None:
            raise invalid(None, f"Invalid parameter name: {name}")
        _place(tree, [found[1], *_PART.findall(found[2])], value)
    return {name: _with_lists(value) for name, value in tree.items()}


def _place(tree: dict[str, Any], parts: list[str], value: str) -> None:
    *way, last = [part or None for part in parts]
    for part in way:
        tree = tree.setdefault(part if part is not None else str(len(tree)), {})
        if not isinstance(tree, dict):
            raise invalid(parts[0], "Invalid object")
    tree[last if last is not None else str(len(tree))] = value


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {name: _with_lists(each) for name, each in value.items()}
    return list(inner.values()) if inner and all(name.isdigit() for name in inner) else inner


class Fields:
    """Parameters, or those inside one of them. Every reader raises Refusal."""

    def __init__(self, values: Any, name: str = "") -> None:
        if not isinstance(values, dict):
            raise invalid(name, "Invalid object")
        self.values: dict[str, Any] = values
        self._name = name

    def path(self, name: str) -> str:
        """The parameter's name as errors spell it."""
        return f"{self._name}[{name}]" if self._name else name

    def only(self, *names: str) -> None:
        for name in self.values:
            if name not in names:
                raise unknown(self.path(name))

    def has(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str, *, limit: int = 5_000) -> str | None:
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise invalid(self.path(name), "Invalid string")
        if value == "":
            raise empty(self.path(name))
        if len(value) > limit:
            message = f"Invalid string: {value[:8]}...{value[-8:]}; must be at most {limit} characters"
            raise invalid(self.path(name), message, "parameter_invalid_string_length")
        return value

    def needed(self, name: str, **bounds: int) -> str:
        value = self.text(name, **bounds)
        if value is None:
            raise missing(self.path(name))
        return value

    def optional(self, name: str) -> str | None:
        """As `text`, where the empty string unsets a value."""
        return None if self.values.get(name) == "" else self.text(name)

    def number(self, name: str) -> int | None:
        value = self.text(name)
        if value is not None and not re.fullmatch(r"-?[0-9]{1,18}", value):
            raise invalid(self.path(name), f"Invalid integer: {value}", "parameter_invalid_integer")
        return None if value is None else int(value)

    def flag(self, name: str) -> bool | None:
        value = self.text(name)
        if value is not None and value not in _TRUTH:
            raise invalid(self.path(name), f"Invalid boolean: {value}")
        return None if value is None else _TRUTH[value]

    def choice(self, name: str, *values: str) -> str | None:
        value = self.text(name)
        if value is not None and value not in values:
            raise invalid(self.path(name), f"Invalid {self.path(name)}: must be one of {', '.join(values)}")
        return value

    def url(self, name: str) -> str | None:
        value = self.text(name)
        if value is not None:
            parts = urlsplit(value)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise invalid(self.path(name), "Not a valid URL", "url_invalid")
        return value

    def inner(self, name: str) -> Fields:
        return Fields(self.values.get(name) or {}, self.path(name))

    def many(self, name: str) -> list[Fields]:
        values = self.values.get(name) or []
        if not isinstance(values, list):
            raise invalid(self.path(name), "Invalid array")
        return [Fields(value, f"{self.path(name)}[{place}]") for place, value in enumerate(values)]

    def texts(self, name: str) -> list[str]:
        values = self.values.get(name) or []
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise invalid(self.path(name), "Invalid array")
        return values

    def metadata(self, before: dict[str, str] | None = None) -> dict[str, str]:
        """Merged into those from before; an empty value takes a key away."""
        given = self.values.get("metadata")
        if given == "":
            return {}
        path = self.path("metadata")
        merged = {**(before or {}), **Fields(given or {}, path).values}
        for key, value in merged.items():
            if not isinstance(value, str) or len(value) > 500 or len(key) > 40:
                raise invalid(path, "Metadata keys have up to 40 characters, and their values are strings of up to 500")
        if len(merged) > 50:
            raise invalid(path, "Metadata can have up to 50 keys")
        return {key: value for key, value in merged.items() if value}

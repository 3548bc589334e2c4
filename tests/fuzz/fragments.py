"""Pieces of requests: drawn from hypothesis once, then combined by a seeded chance, in microseconds an input."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

T = TypeVar("T")
POOL = 400
# Few pools for many runs: drawing them takes a second.
POOLS = 7
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
# Values that break readers of text, numbers, paths, markup, statements and templates.
NASTY = (
    *("", " ", "\x00", "\x1b[31m", "\r\nX-Evil: 1", "\u202e", "\ufffe", "\U0001f4a9", "\u0130", "a" * 300, "a" * 5_000),
    *("../../etc/passwd", "..%2f..%2f", "%00", "%ff", "/", "//", ".", "~"),
    *("' OR 1=1--", '"; DROP TABLE x;--', "{{7*7}}", "${jndi:ldap://x}", "<script>alert(1)</script>", "=cmd|' /C'!A0"),
    *("0", "-1", "1e9", "1e999", "9" * 400, "NaN", "Infinity", "0x10", "true", "null", "[]", "{}", "1.5"),
    *("00000000-0000-4000-8000-000000000000", "svc_nobody", "mcpc_nobody", "cak_a_b", "javascript:alert(1)"),
    *("https://evil.example/cb", "http://127.0.0.1/", "http://[::1]/", "file:///etc/passwd", "2026-02-30", "\ud800"),
)
RAW = (
    *(b"NaN", b"-Infinity", b'"\xff"', b'"\x00"', rb'"\ud800"', b"9" * 2_000, b"1e99999", b"-0", b"01", b"'a'"),
    *(b"[" * 200, b"[" * 70 + b"]" * 70, b'{"a":1,"a":2}', b"/**/1", b"\xef\xbb\xbf{}", b"{,}", b"undefined"),
)


def _drawn(strategy: st.SearchStrategy[T], count: int, number: int) -> list[T]:
    """So many examples, the same ones for the same number."""
    found: list[T] = []

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: T) -> None:
        found.append(value)

    collect()
    return found


@cache
def json_pool(number: int) -> Sequence[Any]:
    return _drawn(JSON, POOL, number)


@cache
def text_pool(number: int) -> Sequence[str]:
    return [*_drawn(st.text(max_size=40), POOL, number), *NASTY]


def draw_all_pools() -> None:
    """The parts of the requests of a long run are in memory before its memory is measured."""
    for number in range(POOLS):
        json_pool(number)
        text_pool(number)


@dataclass
class Chance:
    """Chooses. The same seed makes the same requests."""

    number: int

    def __post_init__(self) -> None:
        self.random = random.Random(self.number)
        self._json, self._text = json_pool(self.number % POOLS), text_pool(self.number % POOLS)

    def one(self, of: Sequence[T]) -> T:
        return self.random.choice(of)

    def may(self, share: float) -> bool:
        return self.random.random() < share

    def value(self) -> Any:
        """Any JSON value."""
        return self.one(self._text) if self.may(0.4) else self.one(self._json)

    def text(self) -> str:
        return self.one(self._text)

    def mixed(self, good: Any, share: float = 0.3) -> Any:
        """Something else in place of what is good, now and then."""
        return self.value() if self.may(share) else good

    def fields(self, good: dict[str, Any], names: Sequence[str] = ()) -> dict[str, Any]:
        """Members left out, changed and added."""
        found = {name: self.mixed(value, 0.2) for name, value in good.items() if not self.may(0.1)}
        while self.may(0.3):
            found[self.one(names) if names and self.may(0.7) else self.text()[:60]] = self.value()
        return found

    def body(self, value: Any) -> bytes:
        """The JSON of a value, or something like it."""
        made = json.dumps(value).encode()
        return self.bent(made) if self.may(0.25) else made

    def bent(self, data: bytes) -> bytes:
        """Bytes changed, left out, repeated, put in."""
        bends: tuple[Callable[[bytes, int], bytes], ...] = (
            lambda text, at: text[:at],
            lambda text, at: text[at:],
            lambda text, at: text[:at] + self.one(RAW) + text[at:],
            lambda text, at: text[:at] + text[at : at + 20] * 3 + text[at + 20 :],
            lambda text, at: text[:at] + bytes([self.random.randrange(256)]) + text[at + 1 :],
            lambda text, at: text + text,
        )
        for _ in range(self.random.randint(1, 3)):
            data = self.one(bends)(data, self.random.randrange(len(data) + 1))
        return data

    def header_text(self) -> str:
        """A header's value that an HTTP server lets through."""
        kept = (each for each in self.text()[:2_000] if each not in "\r\n\x00")
        return "".join(kept).encode("latin-1", "replace").decode("latin-1")

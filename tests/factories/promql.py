"""Evaluates the part of PromQL that the alerts use, over scrapes. Anything else is a fault of the test.

Written after https://prometheus.io/docs/prometheus/latest/querying/: selectors and matchers, `rate` over a range,
`histogram_quantile`, `absent`, `time`, sum/min/max with `by`, comparisons as filters, arithmetic, `or`, `unless on`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.factories.figures import Samples

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Value = float | Vector
TOKEN = re.compile(r'\s*(\d+(?:\.\d+)?[smh]?|[A-Za-z_:][\w:]*|"[^"]*"|[<>=!]=|=~|!~|[-+*/(){}\[\],<>=])')
COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
AGGREGATES: Mapping[str, Callable[[list[float]], float]] = {"sum": sum, "min": min, "max": max}
UNITS = {"s": 1, "m": 60, "h": 3600}
NO_LABELS: Labels = frozenset()


@dataclass(frozen=True)
class Scrape:
    at_s: float
    samples: Samples


def evaluate(expression: str, scrapes: Sequence[Scrape]) -> Vector:
    """The vector at the time of the last scrape; empty means that an alert with this expression does not fire."""
    reader = _Reader(expression, scrapes)
    value = reader.set_operations()
    assert not reader.tokens, f"not understood: {reader.tokens}"
    return value if isinstance(value, dict) else {NO_LABELS: value}


class _Reader:
    def __init__(self, expression: str, scrapes: Sequence[Scrape]) -> None:
        self.tokens = TOKEN.findall(expression)
        assert "".join(self.tokens) == re.sub(r"\s", "", expression), f"not understood: {expression}"
        self._scrapes = scrapes

    def set_operations(self) -> Value:
        left = self.comparison()
        while self._peek() in ("or", "unless"):
            word, on = self.tokens.pop(0), None
            if self._peek() == "on":
                self.tokens.pop(0)
                on = self._names()
            right = self.comparison()
            assert isinstance(left, dict)
            assert isinstance(right, dict)
            matched = {_only(labels, on) for labels in right}
            if word == "unless":
                left = {labels: value for labels, value in left.items() if _only(labels, on) not in matched}
            else:
                left = {**right, **left}
        return left

    def comparison(self) -> Value:
        left = self.sum()
        while self._peek() in COMPARISONS:
            compare, right = COMPARISONS[self.tokens.pop(0)], self.sum()
            assert isinstance(left, dict)
            assert isinstance(right, float)
            left = {labels: value for labels, value in left.items() if compare(value, right)}
        return left

    def sum(self) -> Value:
        left = self.product()
        while self._peek() in ("+", "-"):
            left = _binary(ARITHMETIC[self.tokens.pop(0)], left, self.product())
        return left

    def product(self) -> Value:
        left = self.primary()
        while self._peek() in ("*", "/"):
            sign = self.tokens.pop(0)
            left = _binary(_divide if sign == "/" else ARITHMETIC[sign], left, self.primary())
        return left

    def primary(self) -> Value:
        token = self.tokens.pop(0)
        if token == "(":
            value = self.set_operations()
            self._expect(")")
            return value
        if token[0].isdigit():
            return float(token)
        if token in AGGREGATES:
            return self._aggregate(AGGREGATES[token])
        if self._peek() == "(":
            return self._function(token)
        return self._select(token, self._matchers(), self._scrapes[-1].samples)

    def _aggregate(self, combine: Callable[[list[float]], float]) -> Vector:
        kept: tuple[str, ...] = ()
        if self._peek() == "by":
            self.tokens.pop(0)
            kept = self._names()
        self._expect("(")
        vector = self.set_operations()
        self._expect(")")
        assert isinstance(vector, dict)
        groups: dict[Labels, list[float]] = {}
        for labels, value in vector.items():
            groups.setdefault(_only(labels, kept), []).append(value)
        return {labels: combine(values) for labels, values in groups.items()}

    def _function(self, name: str) -> Value:
        self._expect("(")
        if name == "time":
            self._expect(")")
            return float(self._scrapes[-1].at_s)
        if name == "rate":
            vector = self._rate()
        elif name == "absent":
            inner = self.set_operations()
            assert isinstance(inner, dict)
            vector = {} if inner else {NO_LABELS: 1.0}
        else:
            assert name == "histogram_quantile", f"not understood: {name}"
            quantile = float(self.tokens.pop(0))
            self._expect(",")
            buckets = self.set_operations()
            assert isinstance(buckets, dict)
            vector = _histogram_quantile(quantile, buckets)
        self._expect(")")
        return vector

    def _rate(self) -> Vector:
        name, matchers = self.tokens.pop(0), self._matchers()
        self._expect("[")
        length = self.tokens.pop(0)
        self._expect("]")
        now_s = self._scrapes[-1].at_s
        within = [each for each in self._scrapes if each.at_s >= now_s - float(length[:-1]) * UNITS[length[-1]]]
        first, last = (self._select(name, matchers, within[end].samples) for end in (0, -1))
        passed_s = within[-1].at_s - within[0].at_s
        if not passed_s:
            return {}
        # A series that was not there before has counted from nothing; Prometheus leaves out its first value.
        return {labels: (value - first.get(labels, 0.0)) / passed_s for labels, value in last.items()}

    def _select(self, name: str, matchers: list[tuple[str, str, str]], samples: Samples) -> Vector:
        found = {frozenset(labels): value for (own, labels), value in samples.items() if own == name}
        return {labels: value for labels, value in found.items() if all(_matches(dict(labels), *m) for m in matchers)}

    def _matchers(self) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        if self._peek() != "{":
            return found
        self.tokens.pop(0)
        while self._peek() != "}":
            label, sign, value = (self.tokens.pop(0) for _ in range(3))
            found.append((label, sign, value.strip('"')))
            if self._peek() == ",":
                self.tokens.pop(0)
        self._expect("}")
        return found

    def _names(self) -> tuple[str, ...]:
        self._expect("(")
        names = []
        while (token := self.tokens.pop(0)) != ")":
            if token != ",":
                names.append(token)
        return tuple(names)

    def _peek(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def _expect(self, token: str) -> None:
        assert self.tokens.pop(0) == token


def _matches(labels: Mapping[str, str], label: str, sign: str, value: str) -> bool:
    own = labels.get(label, "")
    if sign in ("=~", "!~"):
        return (re.fullmatch(value, own) is not None) is (sign == "=~")
    return (own == value) is (sign == "=")


def _only(labels: Labels, names: tuple[str, ...] | None) -> Labels:
    return labels if names is None else frozenset(pair for pair in labels if pair[0] in names)


def _divide(one: float, other: float) -> float:
    return one / other if other else float("nan")


def _binary(work: Callable[[float, float], float], left: Value, right: Value) -> Value:
    if isinstance(left, float) and isinstance(right, float):
        return work(left, right)
    if isinstance(left, float):
        assert isinstance(right, dict)
        return {labels: work(left, value) for labels, value in right.items()}
    if isinstance(right, float):
        return {labels: work(value, right) for labels, value in left.items()}
    return {labels: work(value, right[labels]) for labels, value in left.items() if labels in right}


def _histogram_quantile(quantile: float, buckets: Vector) -> Vector:
    groups: dict[Labels, list[tuple[float, float]]] = {}
    for labels, count in buckets.items():
        bound = float(dict(labels)["le"])
        groups.setdefault(frozenset(pair for pair in labels if pair[0] != "le"), []).append((bound, count))
    return {labels: _quantile(quantile, sorted(counts)) for labels, counts in groups.items()}


def _quantile(quantile: float, counts: list[tuple[float, float]]) -> float:
    rank, below = quantile * counts[-1][1], (0.0, 0.0)
    if not counts[-1][1]:
        return float("nan")
    for bound, count in counts:
        if count >= rank:
            if bound == float("inf"):
                return below[0]
            return below[0] + (bound - below[0]) * (rank - below[1]) / (count - below[1])
        below = (bound, count)
    raise AssertionError("the last bucket has all")

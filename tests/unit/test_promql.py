"""The evaluator that the tests of alerts use, by examples that were worked out by hand."""

from __future__ import annotations

import pytest

from tests.factories.figures import Samples
from tests.factories.promql import Scrape, Vector, evaluate


def samples(**values: float) -> Samples:
    return {(name, ()): value for name, value in values.items()}


def labelled(name: str, label: str, **values: float) -> Samples:
    return {(name, ((label, value),)): number for value, number in values.items()}


BUCKETS: Samples = {("s_bucket", (("le", bound),)): count for bound, count in (("1.0", 50), ("2.0", 90), ("+Inf", 100))}
NOW = {**samples(a=2, b=4), **labelled("c", "v", x=1, y=5), **labelled("d", "v", x=7), **BUCKETS}
BEFORE = {**samples(a=1), **labelled("c", "v", x=1, y=2)}
SCRAPES = [Scrape(0, samples(a=-1000)), Scrape(940, BEFORE), Scrape(1000, NOW)]


def only(value: float) -> Vector:
    return {frozenset(): value}


def by_v(**values: float) -> Vector:
    return {frozenset({("v", label)}): value for label, value in values.items()}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a", only(2)),
        ("nothing", {}),
        ("a > 1", only(2)),
        ("a > 2", {}),
        ("a / b", only(0.5)),
        ("time() - a", only(998)),
        ("absent(nothing)", only(1)),
        ("absent(a)", {}),
        ("absent(a > 2)", only(1)),
        ('c{v="y"}', by_v(y=5)),
        ('c{v=~"x|z"}', by_v(x=1)),
        ('c{v!="x"}', by_v(y=5)),
        ("sum(c)", only(6)),
        ("min(c)", only(1)),
        ("max by (v) (c) == 5", by_v(y=5)),
        ("rate(a[5m])", only(1 / 60)),
        ("sum by (v) (rate(c[5m])) > 0", by_v(y=0.05)),
        ("c unless on (v) d > 0", by_v(y=5)),
        ("c unless on (v) d > 7", by_v(x=1, y=5)),
        ("a > 5 or b", only(4)),
        ("a or b", only(2)),
        ("histogram_quantile(0.5, s_bucket)", only(1)),
        ("histogram_quantile(0.7, s_bucket)", only(1.5)),
        ("histogram_quantile(0.99, s_bucket)", only(2)),
    ],
)
def test_examples(expression: str, value: Vector) -> None:
    assert evaluate(expression, SCRAPES) == pytest.approx(value)


@pytest.mark.parametrize("expression", ["a and b", "avg(c)", "a offset 5m", "increase(a[5m])", "a ^ 2"])
def test_anything_else_is_no_silent_answer(expression: str) -> None:
    with pytest.raises((AssertionError, IndexError)):
        evaluate(expression, SCRAPES)

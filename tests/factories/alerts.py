"""Whether an alert of deploy/prometheus fires over scrapes of real figures."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.factories.figures import samples_of
from tests.factories.promql import Scrape, evaluate

ROOT = Path(__file__).resolve().parents[2]
RULES = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yaml").read_text())
EXPRESSIONS: dict[str, str] = {rule["alert"]: rule["expr"] for group in RULES["groups"] for rule in group["rules"]}


def firing(*texts: str, at_s: float = 1_000_000_000.0, apart_s: float = 60.0) -> set[str]:
    """The alerts that fire at the last of these scrapes, which was made `at_s` seconds after 1970."""
    first_s = at_s - apart_s * (len(texts) - 1)
    scrapes = [Scrape(first_s + number * apart_s, samples_of(text)) for number, text in enumerate(texts)]
    return {name for name, expression in EXPRESSIONS.items() if evaluate(expression, scrapes)}

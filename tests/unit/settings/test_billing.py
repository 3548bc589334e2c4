"""BILLING_MODE: chosen by its own variable alone, and `stripe` never by halves. Spec: D152"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from typing import Any

import pytest

from gateway.settings import billing

STRIPE = {
    "STRIPE_SECRET_KEY": "sk_test_1",
    "STRIPE_WEBHOOK_SECRET": "whsec_1",
    "STRIPE_API_BASE": "https://api.stripe.example",
    "STRIPE_PRICE_ID": "price_1",
}


def settings_under(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> dict[str, Any]:
    """The module's settings when only these of its variables are given."""
    for name in ("BILLING_MODE", "BILLING_PORTAL_URL", "LEGACY_CODES", *STRIPE):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert billing.__file__
    return runpy.run_path(billing.__file__)


@pytest.mark.parametrize("name", STRIPE)
def test_a_stripe_variable_alone_changes_no_mode(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert settings_under(monkeypatch, {name: STRIPE[name]})["BILLING_MODE"] == "disabled"


def test_all_stripe_variables_without_the_mode_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings_under(monkeypatch, STRIPE)
    assert found["BILLING_MODE"] == "disabled"
    assert {name: found[name] for name in STRIPE} == STRIPE


@pytest.mark.parametrize("mode", ["disabled", "manual"])
def test_the_mode_is_what_was_chosen(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    assert settings_under(monkeypatch, {**STRIPE, "BILLING_MODE": mode})["BILLING_MODE"] == mode


@pytest.mark.parametrize("missing", STRIPE)
def test_stripe_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    given = {name: value for name, value in STRIPE.items() if name != missing}
    with pytest.raises(SystemExit) as refusal:
        settings_under(monkeypatch, {**given, "BILLING_MODE": "stripe"})
    assert refusal.value.code == 78
    assert capsys.readouterr().err == f"Cannot start: {missing} must be set when BILLING_MODE is stripe.\n"


def test_a_start_with_stripe_ends_in_one_line_and_nobody_lapses() -> None:
    environ = {**os.environ, **STRIPE, "BILLING_MODE": "stripe", "DJANGO_SETTINGS_MODULE": "gateway.settings"}
    started = subprocess.run(
        [sys.executable, "manage.py", "check"], env=environ, capture_output=True, text=True, timeout=60
    )
    assert started.returncode == 78
    (line,) = started.stderr.splitlines()
    assert line.startswith("Cannot start: BILLING_MODE cannot be stripe in this version")
    assert started.stdout == ""

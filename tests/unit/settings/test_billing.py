"""BILLING_MODE: chosen by its own variable alone, and `stripe` never by halves. Spec: D152"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from typing import Any

import pytest

from billing import tasks
from gateway.settings import billing, env, security, workers

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


@pytest.mark.parametrize(
    ("name", "value", "refusal"),
    [
        ("STRIPE_API_BASE", "http://api.stripe.com", "STRIPE_API_BASE must begin with https://"),
        ("STRIPE_API_BASE", "api.stripe.com", "STRIPE_API_BASE must begin with https://"),
        ("STRIPE_API_BASE", "https://api.stripe.com/v1", "STRIPE_API_BASE must be an address without a path"),
        ("STRIPE_API_BASE", "https://key@api.stripe.com", "STRIPE_API_BASE must be an address without a path"),
        ("STRIPE_API_BASE", "https://", "STRIPE_API_BASE must be an address without a path"),
        ("STRIPE_WEBHOOK_SECRET", " , ", "STRIPE_WEBHOOK_SECRET must be set"),
        ("STRIPE_WEBHOOK_SECRET", "a,b,c", "STRIPE_WEBHOOK_SECRET may hold two secrets"),
    ],
)
def test_values_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str, refusal: str
) -> None:
    monkeypatch.setattr(security, "ALLOW_PRIVATE_ENDPOINTS", False)
    with pytest.raises(SystemExit) as ended:
        settings_under(monkeypatch, {**STRIPE, "BILLING_MODE": "stripe", name: value})
    assert ended.value.code == 78
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"Cannot start: {refusal}")
    assert not [secret for secret in ("sk_test_1", "whsec_1", "key@") if secret in line]


def test_two_secrets_and_an_address_with_a_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"STRIPE_WEBHOOK_SECRET": "whsec_2, whsec_1", "STRIPE_API_BASE": "https://api.stripe.example/"}
    found = settings_under(monkeypatch, {**STRIPE, "BILLING_MODE": "stripe", **given})
    assert found["STRIPE_WEBHOOK_SECRETS"] == ("whsec_2", "whsec_1")
    assert found["STRIPE_API_BASE"] == "https://api.stripe.example"


@pytest.mark.parametrize("host", ["127.0.0.1:9700", "localhost", "[::1]:1"])
def test_a_stand_in_of_the_same_host_in_the_embedded_default(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setattr(security, "ALLOW_PRIVATE_ENDPOINTS", False)
    found = settings_under(monkeypatch, {**STRIPE, "BILLING_MODE": "stripe", "STRIPE_API_BASE": f"http://{host}"})
    assert found["STRIPE_API_IS_PRIVATE"]
    assert not settings_under(monkeypatch, {**STRIPE, "BILLING_MODE": "stripe"})["STRIPE_API_IS_PRIVATE"]


def test_helpers_start_without_the_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "HELPER", True)
    assert settings_under(monkeypatch, {"BILLING_MODE": "stripe"})["BILLING_MODE"] == "stripe"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("disabled", set()),
        ("manual", {"record_lapses"}),
        ("stripe", {"record_lapses", "reconcile", "cancel_subscriptions", "prune_events"}),
    ],
)
def test_the_schedule_follows_the_mode(monkeypatch: pytest.MonkeyPatch, mode: str, expected: set[str]) -> None:
    monkeypatch.setattr(billing, "BILLING_MODE", mode)
    schedule = runpy.run_path(str(workers.__file__))["CELERY_BEAT_SCHEDULE"]
    found = {entry["task"] for entry in schedule.values() if entry["task"].startswith("billing.")}
    # A copy of the provider's objects has tasks of its own.
    assert {name for name in found if "mirror" not in name} == {f"billing.{name}" for name in expected}
    assert {getattr(tasks, name).name for name in expected} <= found


@pytest.mark.parametrize("mode", ["disabled", "manual", "stripe"])
def test_the_library_is_loaded_where_it_is_used(mode: str) -> None:
    """Settings, URLs and workers start without it: it takes 25 MB."""
    environ = {**os.environ, **STRIPE, "BILLING_MODE": mode, "DJANGO_SETTINGS_MODULE": "gateway.settings"}
    code = (
        "import django, sys; django.setup(); import gateway.urls, billing.tasks, billing.provider;"
        " print(sorted({name.partition('.')[0] for name in sys.modules} & {'stripe', 'djstripe'}))"
    )
    started = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=120)
    assert started.returncode == 0, started.stderr
    if mode != "stripe":
        assert started.stdout == "[]\n"

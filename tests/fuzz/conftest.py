"""The world of the attacks, without limits: they have tests of their own, and would hide what lies behind them."""

from __future__ import annotations

import pytest
from django.conf import LazySettings

from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission
from gateway.web import rate
from tests.attacks.conftest import vendor, wire, world

__all__ = ["vendor", "wire", "world"]
LIMITS = (
    *("BACKSTOP", "TOOL_CALLS", "FAILED_AUTHS", "CLIENT_REGISTRATIONS", "CLIENT_REGISTRATIONS_OF_ALL", "DEVICE_STARTS"),
    *("REFUSED_TOKEN_REQUESTS", "REFUSED_TOKENS_OF_CLIENT", "TOKENS_LATELY", "TOKENS_OF_CLIENT", "SIGN_IN_STARTS"),
    *("LARGE_BODIES", "VENDOR_REQUESTS", "PROVIDER_EVENTS", "INVITATION_ACCEPT"),
)


@pytest.fixture
def _unlimited(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    def count(request: object, rule: Rule) -> Admission:
        return Admission(rule, True, rule.limit - 1, 0, None)

    monkeypatch.setattr(rate, "count", count)
    settings.USER_CODE_MISSES = 10_000_000
    settings.REGISTERED_CLIENTS = 1_000_000
    for name in LIMITS:
        rule = getattr(settings, name)
        setattr(settings, name, Rule(f"fuzz {rule.name}", limit=1_000_000_000, window_s=rule.window_s))

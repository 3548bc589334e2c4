"""Figures that are read beside the scrapes, and the one about the identity provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prometheus_client.core import GaugeMetricFamily, Metric

from gateway.metrics_server.identity_provider import read_identity_provider
from gateway.metrics_server.rounds import Rounds
from orgs.signin import provider
from orgs.signin.provider import ProviderUnavailable
from tests.factories.alerts import firing
from tests.factories.figures import scraped, value_of


def test_a_failed_round_leaves_no_figure_of_before() -> None:
    answers: list[Exception | None] = [None, ValueError("planted")]

    def read() -> list[Metric]:
        if (fault := answers.pop(0)) is not None:
            raise fault
        return [GaugeMetricFamily("gateway_of_a_test", "Of a test.", value=1)]

    rounds = Rounds("a test's", read)
    assert list(rounds.collect()) == []
    rounds.read()
    assert [metric.name for metric in rounds.collect()] == ["gateway_of_a_test"]
    rounds.read()
    assert list(rounds.collect()) == []


def test_a_provider_that_is_away_raises_its_alert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def scrape() -> str:
        rounds = Rounds("identity-provider", read_identity_provider)
        rounds.read()
        return scraped(tmp_path, rounds)

    monkeypatch.setattr(provider, "asked_now", lambda: None)
    assert value_of(scrape(), "gateway_identity_provider_up") == 1
    assert "GatewayIdentityProviderAway" not in firing(scrape())

    def away() -> None:
        raise ProviderUnavailable("planted")

    monkeypatch.setattr(provider, "asked_now", away)
    assert value_of(scrape(), "gateway_identity_provider_up") == 0
    assert "GatewayIdentityProviderAway" in firing(scrape())


def test_without_a_provider_there_is_no_figure(settings: Any) -> None:
    settings.OIDC_OP_DISCOVERY_URL = ""
    assert read_identity_provider() == []

"""Whether the identity provider answers this host. A host without OIDC_OP_DISCOVERY_URL has no such figure."""

from __future__ import annotations

import structlog
from django.conf import settings
from prometheus_client.core import GaugeMetricFamily, Metric

from orgs.signin import provider
from orgs.signin.provider import ProviderUnavailable

NAME, MEANING = "gateway_identity_provider_up", "1 while the identity provider answers this host and publishes keys."
log = structlog.get_logger(__name__)


def read_identity_provider() -> list[Metric]:
    if not settings.OIDC_OP_DISCOVERY_URL:
        return []
    try:
        provider.asked_now()
    except ProviderUnavailable as fault:
        log.warning("metrics.identity_provider_away", fault=str(fault))
        return [GaugeMetricFamily(NAME, MEANING, value=0)]
    return [GaugeMetricFamily(NAME, MEANING, value=1)]

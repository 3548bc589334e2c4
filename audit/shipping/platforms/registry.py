"""Pure: the platforms by their values. Spec: §2 Log shipping destination · D140"""

from __future__ import annotations

from audit.shipping.platforms.azure_monitor import AzureMonitor
from audit.shipping.platforms.better_stack import BetterStack
from audit.shipping.platforms.elasticsearch import Elasticsearch
from audit.shipping.platforms.logscale import LogScale
from audit.shipping.platforms.loki import Loki
from audit.shipping.platforms.otlp import Otlp
from audit.shipping.platforms.platform import Platform
from audit.shipping.platforms.splunk import Splunk
from audit.shipping.platforms.webhook import Webhook

PLATFORMS: dict[str, Platform] = {
    platform.value: platform
    for platform in (
        Elasticsearch(),
        Loki(),
        Splunk(),
        BetterStack(),
        LogScale(),
        Otlp(),
        AzureMonitor(),
        Webhook(),
    )
}
_BY_NAME = {name: platform for platform in PLATFORMS.values() for name in (platform.value, *platform.aliases)}


def platform_named(name: str) -> Platform | None:
    """By value or alias, in any case."""
    return _BY_NAME.get(name.strip().lower())

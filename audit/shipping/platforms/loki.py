"""Pure: Grafana Loki by its push API, a JSON line for each record. Spec: D140 · docs/log-shipping.md"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from audit.shipping.events import Event
from audit.shipping.platforms.authorization import basic, check_pair
from audit.shipping.platforms.encoding import epoch_nanoseconds, json_text
from audit.shipping.platforms.exchange import (
    JSON_TYPE,
    Answer,
    Delivered,
    DestinationRefused,
    InvalidDestination,
    Outgoing,
    RetryLater,
    Target,
    Verdict,
)
from audit.shipping.platforms.platform import ConfigField, Platform
from audit.shipping.platforms.request_parts import with_path
from audit.shipping.platforms.verdicts import retry_after_s, verdict_of_status, words_of
from gateway.lib.clock import rfc3339
from gateway.lib.sentences import sentence

PATH: Final = "/loki/api/v1/push"
SERVICE: Final = "mcp-gateway"
_TENANT = re.compile(r"[A-Za-z0-9!_.*'()-]{1,150}")
_IGNORED = re.compile(r"total ignored: (\d+) out of (\d+) for stream")
_OF_THE_TIME = re.compile(r"too far behind|out of order|too old")
_TOO_OLD = re.compile(r"has timestamp too old: .*?, oldest acceptable timestamp is: ([0-9TZ:.+-]+)")
_FOR_AGE = sentence("Loki rejects lines older than its limit, one week by default.")
_FOR_DELAY = sentence("Loki rejects lines more than an hour older than the newest line of their stream.")
# Of the tenant or the labels, which every batch has.
_OF_THE_DESTINATION = re.compile(
    r"org id|tenant|missing required labels|label names; limit|label (name|value) too long"
)


class Loki(Platform):
    value = "platform_b"
    title = "Grafana Loki"
    aliases = ("loki", "grafana loki", "grafana-loki", "grafana")
    endpoint_label = sentence("Loki address")
    endpoint_help = sentence("The base address, or the full one that ends with %(path)s.", path=PATH)
    endpoint_example = "https://logs-prod-012.grafana.net"
    fields = (
        ConfigField("username", sentence("User"), sentence("In Grafana Cloud, the number of the Loki instance.")),
        ConfigField(
            "password",
            sentence("Password or access policy token"),
            sentence("In Grafana Cloud, with the scope logs:write."),
        ),
        ConfigField("tenant", sentence("Tenant"), sentence("Sent as X-Scope-OrgID, for a Loki with several tenants.")),
    )

    def check(self, url: str, config: Mapping[str, str]) -> None:
        check_pair(config)
        tenant = config.get("tenant")
        if tenant and (tenant in (".", "..") or not _TENANT.fullmatch(tenant)):
            rule = sentence("At most 150 letters, digits and ! - _ . * ' ( ), one tenant only.")
            raise InvalidDestination("config_missing", tenant=rule)

    def request(self, target: Target, events: Sequence[Event], *, now: datetime, token: str) -> Outgoing:
        headers = dict(JSON_TYPE)
        if username := target.config.get("username"):
            headers["Authorization"] = basic(username, target.config.get("password", ""))
        if tenant := target.config.get("tenant"):
            headers["X-Scope-OrgID"] = tenant
        return Outgoing(with_path(target.url, PATH), headers, json_text({"streams": _streams(events)}).encode())

    def read(self, answer: Answer, events: Sequence[Event]) -> Verdict:
        text = answer.body.decode(errors="replace")
        if 200 <= answer.status < 300:
            # 204 is the only success. 260 says that an administrator stopped the tenant's ingestion for a while.
            stored = answer.status == 204 or (answer.status == 200 and not text.strip())
            return Delivered() if stored else RetryLater(words_of(answer), retry_after_s(answer))
        if answer.status == 400 and _OF_THE_DESTINATION.search(text.partition("entry with timestamp")[0]):
            return DestinationRefused(words_of(answer))
        if answer.status == 400 and (_ignores_all(text, len(events)) or _are_too_old(text, events)):
            # Smaller batches would only find them out one by one.
            refused = dict.fromkeys(range(len(events)), _reason(text, answer))
            return Delivered(refused, is_certain=_OF_THE_TIME.search(text) is not None)
        return verdict_of_status(answer)


def _streams(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Few labels of few values, for each combination is a stream. Inside a stream the oldest is first.

    The organization is one of them: Loki refuses what is an hour older than the stream's newest line, so organizations
    that share a tenant must not share a stream.
    """
    streams: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for event in sorted(events, key=lambda event: event.time):
        of_stream = streams.setdefault((event.type, event.fields.get("orgId", "")), [])
        of_stream.append((str(epoch_nanoseconds(event.time)), _line(event)))
    return [
        {"stream": {"service_name": SERVICE, "event_type": event_type, "org_id": org_id}, "values": values}
        for (event_type, org_id), values in streams.items()
    ]


def _line(event: Event) -> str:
    # The id makes each line its own: Loki drops a line that equals another one of the same time.
    return json_text({"id": event.id, "type": event.type, "timestamp": rfc3339(event.time), **event.fields})


def _ignores_all(text: str, count: int) -> bool:
    """Whether every entry is too far behind or out of order."""
    found = _IGNORED.search(text)
    return found is not None and found[1] == found[2] == str(count) and "rate limit" not in text.lower()


def _are_too_old(text: str, events: Sequence[Event]) -> bool:
    """Whether every entry is older than the tenant's limit."""
    found = _TOO_OLD.search(text)
    try:
        return found is not None and max(event.time for event in events) < datetime.fromisoformat(found[1])
    except (ValueError, TypeError):  # another form of the time, or one without a zone
        return False


def _reason(text: str, answer: Answer) -> str:
    words = _FOR_DELAY if "too far behind" in text else _FOR_AGE if "too old" in text else ""
    return f"{words} {words_of(answer)}".strip()

"""Pure: Microsoft Sentinel, through the Logs Ingestion API of Azure Monitor.

https://learn.microsoft.com/azure/azure-monitor/logs/logs-ingestion-api-overview
Spec: §2 Log shipping destination · D140
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from audit.shipping.events import Event
from audit.shipping.platforms import azure_token
from audit.shipping.platforms.exchange import (
    JSON_TYPE,
    Answer,
    DestinationRefused,
    InvalidDestination,
    Outgoing,
    RetryLater,
    Target,
    Token,
    Verdict,
)
from audit.shipping.platforms.platform import ConfigField, Platform
from audit.shipping.platforms.request_parts import host_of
from audit.shipping.platforms.verdicts import retry_after_s, verdict_of_status, words_of
from gateway.lib import clock
from gateway.lib.sentences import sentence

DEFAULT_STREAM: Final = "Custom-McpGateway_CL"
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST: Final = re.compile(rf"(?:{_LABEL}\.)+ingest\.monitor\.azure\.(?:com|us|cn)")
_GUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
# These become parts of a URL's path: no slash, dot segment, query or percent sign gets in.
_TENANT: Final = re.compile(rf"(?ai){_GUID}|{_LABEL}(?:\.{_LABEL})+")
_RULE: Final = re.compile(r"dcr-[0-9A-Za-z]{1,64}")
_STREAM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


class AzureMonitor(Platform):
    value = "platform_g"
    title = "Microsoft Sentinel (Azure Monitor)"
    aliases = (
        *("microsoft sentinel", "microsoft_sentinel", "sentinel", "azure sentinel", "azure_sentinel"),
        *("azure monitor", "azure_monitor"),
    )
    endpoint_label = sentence("Logs ingestion endpoint")
    endpoint_help = sentence(
        "From the data collection rule (logsIngestion in its JSON view) or a data collection endpoint."
    )
    endpoint_example = "https://mcp-gateway-a1b2.eastus-1.ingest.monitor.azure.com"
    fields = (
        ConfigField(
            "tenantId",
            sentence("Directory (tenant) ID"),
            sentence("From the app registration."),
            required=True,
            secret=False,
        ),
        ConfigField(
            "clientId",
            sentence("Application (client) ID"),
            sentence("From the app registration."),
            required=True,
            secret=False,
        ),
        ConfigField(
            "clientSecret", sentence("Client secret"), sentence("Its Value, not its Secret ID."), required=True
        ),
        ConfigField(
            "dcrImmutableId", sentence("DCR immutable ID"), sentence("Starts with dcr-."), required=True, secret=False
        ),
        ConfigField(
            "stream",
            sentence("Stream"),
            sentence("As declared in the rule. Default: %(stream)s.", stream=DEFAULT_STREAM),
        ),
    )

    def check(self, url: str, config: Mapping[str, str]) -> None:
        if not _HOST.fullmatch(host_of(url)):
            raise InvalidDestination(
                "endpoint_not_allowed",
                endpointUrl=sentence("The host must end with .ingest.monitor.azure.com (or .us, .cn)."),
            )
        if not _TENANT.fullmatch(config["tenantId"]):
            raise InvalidDestination(
                "config_missing", tenantId=sentence("A tenant must be a GUID or a verified domain.")
            )
        if not _RULE.fullmatch(config["dcrImmutableId"]):
            raise InvalidDestination(
                "config_missing", dcrImmutableId=sentence("Must be dcr- followed by letters and digits.")
            )
        if not _STREAM.fullmatch(_stream(config)):
            raise InvalidDestination(
                "config_missing",
                stream=sentence("The name of a stream can contain only letters, digits, “_”, “-” and “.”."),
            )

    def request(self, target: Target, events: Sequence[Event], *, now: datetime, token: str) -> Outgoing:
        path = f"/dataCollectionRules/{target.config['dcrImmutableId']}/streams/{_stream(target.config)}"
        return Outgoing(
            f"https://{host_of(target.url)}{path}?api-version=2023-01-01",
            {**JSON_TYPE, "Authorization": f"Bearer {token}"},
            msgspec.json.encode([_row(event) for event in events]),
        )

    def read(self, answer: Answer, events: Sequence[Event]) -> Verdict:
        # A token that ended early, or by a clock that differs: the next one may be accepted.
        if answer.status == 401:
            return RetryLater(words_of(answer), retry_after_s(answer))
        # A value that does not fit its column is stored empty. So the refusal is of the rule or of the stream.
        if answer.status == 400:
            return DestinationRefused(words_of(answer))
        return verdict_of_status(answer)

    def token_request(self, target: Target) -> Outgoing:
        return azure_token.token_request(target, cloud=host_of(target.url).rpartition(".")[2])

    def read_token(self, answer: Answer) -> Token | RetryLater | DestinationRefused:
        return azure_token.read_token(answer)


def _stream(config: Mapping[str, str]) -> str:
    return config.get("stream") or DEFAULT_STREAM


def _row(event: Event) -> dict[str, Any]:
    """The names begin with a capital. Azure reserves Type and TenantId, so the event's type is the Category."""
    columns = {name[0].upper() + name[1:]: value for name, value in event.fields.items()}
    return {"TimeGenerated": clock.rfc3339(event.time), "EventId": event.id, "Category": event.type, **columns}

"""Pure: Elasticsearch and OpenSearch by `_bulk`, records in the Elastic Common Schema. docs/log-shipping.md

Records are created, never overwritten, with the event's id: data streams take nothing else, and a batch that is sent
again meets what is already there (409). Spec: D140
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from audit.shipping.events import Event
from audit.shipping.platforms.authorization import basic, check_header_text, check_pair
from audit.shipping.platforms.bulk_answer import verdict_of_bulk
from audit.shipping.platforms.ecs import ecs_document
from audit.shipping.platforms.encoding import json_lines
from audit.shipping.platforms.exchange import Answer, InvalidDestination, Outgoing, Target, Verdict
from audit.shipping.platforms.platform import ConfigField, Platform
from gateway.lib.clock import rfc3339
from gateway.lib.sentences import sentence

# Elasticsearch makes a data stream of it, by its own template for logs-*-*; OpenSearch makes an index.
DEFAULT_INDEX: Final = "logs-mcp_gateway-default"
# An answer has a line for each record. These parts of it decide.
_PARTS: Final = "filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason"
_BULK: Final = "/_bulk"
_NO_PATH: Final = ("", "/", _BULK)
_INDEX = re.compile(r"[a-z0-9][a-z0-9._+-]{0,254}")


class Elasticsearch(Platform):
    value = "platform_a"
    title = "Elasticsearch / OpenSearch"
    aliases = ("elasticsearch", "elastic", "opensearch")
    endpoint_label = sentence("Elasticsearch endpoint")
    endpoint_help = sentence("The base address of the cluster, or the full address of its _bulk API.")
    endpoint_example = "https://my-deployment.es.eu-central-1.aws.elastic.cloud"
    fields = (
        ConfigField(
            "apiKey",
            sentence("API key"),
            sentence("The encoded key, with the privileges create_doc and auto_configure."),
        ),
        ConfigField("username", sentence("User name"), sentence("For clusters without API keys, such as OpenSearch.")),
        ConfigField("password", sentence("Password")),
        ConfigField(
            "index",
            sentence("Index or data stream"),
            sentence("Without it, %(name)s.", name=DEFAULT_INDEX),
            secret=False,
        ),
    )

    def check(self, url: str, config: Mapping[str, str]) -> None:
        path = urlsplit(url).path
        if path not in _NO_PATH and not path.endswith(_BULK):
            rule = sentence("Enter the base address, or the full one that ends with %(_bulk)s.", _bulk=_BULK)
            raise InvalidDestination("endpoint_not_allowed", endpointUrl=rule)
        check_header_text(config, "apiKey")
        check_pair(config)
        if config.get("apiKey") and config.get("username"):
            raise InvalidDestination("config_missing", apiKey=sentence("Enter an API key or a user name, not both."))
        if (index := config.get("index")) and not _INDEX.fullmatch(index):
            rule = sentence("Lowercase letters, digits and . _ + - only, starting with a letter or digit.")
            raise InvalidDestination("config_missing", index=rule)

    def request(self, target: Target, events: Sequence[Event], *, now: datetime, token: str) -> Outgoing:
        index = target.config.get("index", "")
        parts, named = urlsplit(target.url), {"_index": index} if index else {}
        if parts.path in _NO_PATH:
            # In the path alone: some clusters refuse an index in the body.
            parts, named = parts._replace(path=f"/{index or DEFAULT_INDEX}{_BULK}"), {}
        url = parts._replace(query="&".join(filter(None, (parts.query, _PARTS)))).geturl()
        lines = [line for event in events for line in _lines(event, named)]
        headers = {"Content-Type": "application/x-ndjson", **_authorization(target.config)}
        return Outgoing(url, headers, json_lines(lines))

    def read(self, answer: Answer, events: Sequence[Event]) -> Verdict:
        return verdict_of_bulk(answer, len(events))


def _lines(event: Event, named: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The action and the record."""
    return {"create": {**named, "_id": event.id}}, {"@timestamp": rfc3339(event.time), **ecs_document(event)}


def _authorization(config: Mapping[str, str]) -> dict[str, str]:
    if key := config.get("apiKey"):
        # Kibana shows a key encoded; its API also gives the two parts, which people join with a colon.
        return {"Authorization": f"ApiKey {b64encode(key.encode()).decode() if ':' in key else key}"}
    if username := config.get("username"):
        return {"Authorization": basic(username, config.get("password", ""))}
    return {}

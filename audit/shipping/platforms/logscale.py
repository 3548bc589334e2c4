"""Pure: CrowdStrike Falcon LogScale by its HEC endpoint, records in the Elastic Common Schema. Spec: D140"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from audit.shipping.events import Event
from audit.shipping.platforms.authorization import check_header_text
from audit.shipping.platforms.ecs import ecs_document
from audit.shipping.platforms.encoding import epoch_seconds, json_lines
from audit.shipping.platforms.exchange import JSON_TYPE, Answer, Outgoing, RetryLater, Target, Verdict
from audit.shipping.platforms.platform import ConfigField, Platform
from audit.shipping.platforms.request_parts import with_path
from audit.shipping.platforms.verdicts import is_web_page, retry_after_s, verdict_of_status, words_of
from gateway.lib.sentences import sentence

PATH: Final = "/api/v1/ingest/hec"
SOURCE: Final = "mcp-gateway"


class LogScale(Platform):
    value = "platform_e"
    title = "CrowdStrike Falcon LogScale"
    aliases = ("logscale", "falcon logscale", "crowdstrike falcon logscale", "crowdstrike", "humio")
    endpoint_label = sentence("LogScale address")
    endpoint_help = sentence("The base address of the cluster, or the full one that ends with %(path)s.", path=PATH)
    endpoint_example = "https://cloud.community.humio.com"
    fields = (
        ConfigField(
            "token", sentence("Ingest token"), sentence("From the repository that receives the records."), required=True
        ),
    )

    def check(self, url: str, config: Mapping[str, str]) -> None:
        check_header_text(config, "token")

    def request(self, target: Target, events: Sequence[Event], *, now: datetime, token: str) -> Outgoing:
        headers = {**JSON_TYPE, "Authorization": f"Bearer {target.config['token']}"}
        return Outgoing(with_path(target.url, PATH), headers, json_lines(map(_envelope, events)))

    def read(self, answer: Answer, events: Sequence[Event]) -> Verdict:
        # The documentation promises no body of a success, but no page of a proxy either.
        if 200 <= answer.status < 300 and is_web_page(answer):
            return RetryLater(f"not an answer of LogScale: {words_of(answer)}", retry_after_s(answer))
        return verdict_of_status(answer)


def _envelope(event: Event) -> dict[str, Any]:
    """Without a sourcetype, which would name a parser. The members of an object are fields without one."""
    return {"time": epoch_seconds(event.time), "source": SOURCE, "event": ecs_document(event)}

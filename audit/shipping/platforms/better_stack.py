"""Pure: Better Stack Logs over its HTTP API.

https://betterstack.com/docs/logs/ingesting-data/http/logs/  Spec: §2 Log shipping destination · D140
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from audit.shipping.events import Event
from audit.shipping.platforms.exchange import (
    JSON_TYPE,
    Answer,
    BatchRefused,
    InvalidDestination,
    Outgoing,
    RetryLater,
    Target,
    Verdict,
)
from audit.shipping.platforms.for_people import level_of, line_of
from audit.shipping.platforms.platform import ConfigField, Platform
from audit.shipping.platforms.request_parts import fits_header, host_of, with_path
from audit.shipping.platforms.verdicts import retry_after_s, verdict_of_status, words_of
from gateway.lib import clock
from gateway.lib.sentences import sentence

HOST: Final = "in.logs.betterstack.com"
_OVER_QUOTA: Final = 402
_NOT_PARSED: Final = 406
_NOT_ONE_LINE: Final = sentence("A source token must be one line of letters and digits.")


class BetterStack(Platform):
    value = "platform_d"
    title = "Better Stack Logs"
    aliases = ("better stack", "better-stack", "better_stack", "betterstack", "logtail")
    endpoint_label = sentence("Ingesting host")
    endpoint_help = sentence("Leave empty. Only Better Stack’s own address is accepted.")
    endpoint_example = f"https://{HOST}"
    preset_url = f"https://{HOST}"
    fields = (
        ConfigField(
            "token",
            sentence("Source token"),
            sentence("Telemetry > Sources > your source > Source token."),
            required=True,
        ),
    )

    def check(self, url: str, config: Mapping[str, str]) -> None:
        if host_of(url) != HOST:
            raise InvalidDestination(
                "endpoint_not_allowed", endpointUrl=sentence("Logs go to https://%(host)s only.", host=HOST)
            )
        if not fits_header(config["token"]):
            raise InvalidDestination("config_missing", token=_NOT_ONE_LINE)

    def request(self, target: Target, events: Sequence[Event], *, now: datetime, token: str) -> Outgoing:
        headers = {**JSON_TYPE, "Authorization": f"Bearer {target.config['token']}"}
        return Outgoing(with_path(target.url, "/"), headers, msgspec.json.encode([_record(event) for event in events]))

    def read(self, answer: Answer, events: Sequence[Event]) -> Verdict:
        # The quota is raised, or begins again, at Better Stack: the destination needs no change.
        if answer.status == _OVER_QUOTA:
            return RetryLater(words_of(answer), retry_after_s(answer))
        if answer.status == _NOT_PARSED:
            return BatchRefused(words_of(answer))
        return verdict_of_status(answer)


def _record(event: Event) -> dict[str, Any]:
    return {
        "dt": clock.rfc3339(event.time),
        "level": level_of(event),
        "message": line_of(event),
        "eventId": event.id,
        "type": event.type,
        **event.fields,
    }

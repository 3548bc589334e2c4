"""Pure: the contract of a platform: its fields, the request of a batch, and the reading of the platform's answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from audit.shipping.events import Event
from audit.shipping.platforms.exchange import Answer, DestinationRefused, Outgoing, RetryLater, Target, Token, Verdict
from audit.shipping.platforms.verdicts import verdict_of_status
from gateway.lib.sentences import sentence


@dataclass(frozen=True, slots=True)
class ConfigField:
    """A key of a destination's `config`. A secret is shown masked. `label` is the platform's own word for it.

    `has_lines`: the value may have several lines.
    """

    name: str
    label: str
    help: str = ""
    required: bool = False
    secret: bool = True
    has_lines: bool = False


class Platform(ABC):
    """One wire protocol. Instances hold no state."""

    value: str  # the neutral value of the specification, such as platform_a
    title: str  # the product's name
    aliases: tuple[str, ...]  # names that are accepted for `value`
    endpoint_label: str = sentence("Address")
    endpoint_help: str = ""
    endpoint_example: str = ""
    preset_url: str = ""  # used when endpointUrl is left out
    fields: tuple[ConfigField, ...] = ()

    def check(self, url: str, config: Mapping[str, str]) -> None:  # noqa: B027 - most have no more rules
        """The platform's own rules beyond required fields; scheme, port and host have been checked.

        Raises: InvalidDestination.
        """

    @abstractmethod
    def request(self, target: Target, events: Sequence[Event], *, now: datetime, token: str) -> Outgoing:
        """The request of a batch in the order of `events`, at least one. `token`: see token_request, else empty."""

    def read(self, answer: Answer, events: Sequence[Event]) -> Verdict:
        """By default the status decides."""
        return verdict_of_status(answer)

    def token_request(self, target: Target) -> Outgoing | None:
        """The request for a token, None for a platform that needs none."""
        return None

    def read_token(self, answer: Answer) -> Token | RetryLater | DestinationRefused:
        """The answer to token_request. A platform with the one has the other."""
        raise NotImplementedError

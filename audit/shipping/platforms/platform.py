"""Pure: the contract of a platform: its fields, the request of a batch, and the reading of the platform's answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from audit.shipping.events import Event

JSON_TYPE = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class ConfigField:
    """A key of a destination's `config`. A secret is shown masked. `label` is the platform's own word for it."""

    name: str
    label: str
    help: str = ""
    required: bool = False
    secret: bool = True


@dataclass(frozen=True, slots=True)
class Target:
    """Where a batch goes: the checked address and the opened `config`, all texts."""

    url: str
    config: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request. `may_compress`: the platform takes Content-Encoding: gzip."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    may_compress: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What the platform answered; the names of `headers` match in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Delivered:
    """The platform has the batch. `refused`: places in the batch that it refused for good, with its reason for each."""

    refused: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RetryLater:
    """The same batch may be accepted later. `after_s`: the platform's own wish, in seconds."""

    reason: str
    after_s: float | None = None


@dataclass(frozen=True, slots=True)
class BatchRefused:
    """A record of the batch is refused for good, and the answer does not say which: smaller batches find it."""

    reason: str


@dataclass(frozen=True, slots=True)
class DestinationRefused:
    """No batch will be accepted until somebody changes the destination: a wrong token, a wrong address."""

    reason: str


Verdict = Delivered | RetryLater | BatchRefused | DestinationRefused


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token of the platform's own authorization server, usable for `lifetime_s` seconds."""

    value: str = field(repr=False)
    lifetime_s: float


class InvalidDestination(ValueError):
    """`code` is endpoint_not_allowed or config_missing; `fields` are sentences by the field's name. Spec: D97"""

    def __init__(self, code: str, **fields: str) -> None:
        self.code, self.fields = code, fields
        super().__init__(code)


class Platform(ABC):
    """One wire protocol. Instances hold no state."""

    value: str  # the neutral value of the specification, such as platform_a
    title: str  # the product's name
    aliases: tuple[str, ...]  # names that are accepted for `value`
    endpoint_label: str = "Address"
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
        from audit.shipping.platforms.verdicts import verdict_of_status

        return verdict_of_status(answer)

    def token_request(self, target: Target) -> Outgoing | None:
        """The request for a token, None for a platform that needs none."""
        return None

    def read_token(self, answer: Answer) -> Token | RetryLater | DestinationRefused:
        raise NotImplementedError

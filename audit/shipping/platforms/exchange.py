"""Pure: what goes to a platform, what comes back, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

JSON_TYPE = {"Content-Type": "application/json"}


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
    """The answer of a platform; the names of `headers` match in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Delivered:
    """The platform has the batch.

    `refused`: places in the batch that it refused for good, with its reason for each. `unnamed`: reasons of so many
    more, of which it does not say the places. `is_certain`: no change of the destination would make it take them.
    """

    refused: Mapping[int, str] = field(default_factory=dict)
    unnamed: tuple[str, ...] = ()
    is_certain: bool = False


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
    """The platform takes no batch until the destination is changed: its token or its address is wrong."""

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

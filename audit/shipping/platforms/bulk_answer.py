"""Pure: the answer of `_bulk`, which has an outcome for each record."""

from __future__ import annotations

from typing import Final

import msgspec

from audit.shipping.platforms.answers import json_of
from audit.shipping.platforms.exchange import Answer, Delivered, DestinationRefused, RetryLater, Verdict
from audit.shipping.platforms.verdicts import EXCERPT_CHARACTERS, retry_after_s, verdict_of_status, words_of

_ALREADY_THERE: Final = 409
_OF_THE_RECORD: Final = frozenset({400, 413, 422})
# Refusals with such a status that no record can help.
_TYPES_OF_THE_DESTINATION: Final = frozenset({"index_closed_exception", "invalid_index_name_exception"})
_REASONS_OF_THE_DESTINATION: Final = ("no write index is defined", "pipeline with id")
# 403 while an administrator or a full disk blocks writes.
_BLOCKED: Final = "cluster_block_exception"


class _Cause(msgspec.Struct):
    type: str = ""
    reason: str | None = None


class _Outcome(msgspec.Struct):
    status: int = 0
    error: _Cause | None = None

    @property
    def cause(self) -> _Cause:
        return self.error or _Cause()

    @property
    def is_stored(self) -> bool:
        return 200 <= self.status < 300 or self.status == _ALREADY_THERE

    @property
    def is_temporary(self) -> bool:
        return self.status in (0, 429) or self.status >= 500 or self.cause.type == _BLOCKED

    @property
    def is_of_the_record(self) -> bool:
        return (
            self.status in _OF_THE_RECORD
            and self.cause.type not in _TYPES_OF_THE_DESTINATION
            and not (self.cause.reason or "").startswith(_REASONS_OF_THE_DESTINATION)
        )

    @property
    def words(self) -> str:
        parts = (str(self.status), self.cause.type, self.cause.reason)
        return ": ".join(part for part in parts if part)[:EXCERPT_CHARACTERS]


class _Bulk(msgspec.Struct):
    errors: bool
    items: list[dict[str, _Outcome]] = msgspec.field(default_factory=list)


def verdict_of_bulk(answer: Answer, count: int) -> Verdict:
    """`count` records were sent."""
    if answer.status == 400:  # a record's own fault is in its item
        return DestinationRefused(words_of(answer))
    if not 200 <= answer.status < 300:
        return verdict_of_status(answer)
    bulk = json_of(answer, _Bulk)
    if bulk is None or (bulk.errors and len(bulk.items) != count):
        return RetryLater(f"not an answer of _bulk: {words_of(answer)}", retry_after_s(answer))
    if not bulk.errors:
        return Delivered()
    return _verdict_of_items([next(iter(item.values()), _Outcome()) for item in bulk.items])


def _verdict_of_items(outcomes: list[_Outcome]) -> Verdict:
    failed = {place: outcome for place, outcome in enumerate(outcomes) if not outcome.is_stored}
    temporary = [outcome for outcome in failed.values() if outcome.is_temporary]
    if temporary:  # what is stored answers 409 to the next try
        return RetryLater(temporary[0].words)
    for outcome in failed.values():
        if not outcome.is_of_the_record:
            return DestinationRefused(outcome.words)
    return Delivered({place: outcome.words for place, outcome in failed.items()})

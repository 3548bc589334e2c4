"""Pure: a batch is sent in order; halves of it find a record that the platform refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from audit.shipping.events import Event
from audit.shipping.platforms.exchange import BatchRefused, Delivered, DestinationRefused, RetryLater, Verdict

# So many records refused one by one, and none accepted: something is wrong with the destination, not with them.
SUSPICIOUS = 10


@dataclass(slots=True)
class Progress:
    """The first `handled` records of a batch were accepted or refused. `stopped`: why the others were not."""

    handled: int = 0
    refused: dict[int, str] = field(default_factory=dict)
    unnamed: list[str] = field(default_factory=list)  # reasons for refused records that the platform did not name
    certain: set[int] = field(default_factory=set)  # of the refused ones: surely not the destination's fault
    stopped: RetryLater | DestinationRefused | None = None

    @property
    def accepted(self) -> int:
        return self.handled - len(self.refused) - len(self.unnamed)

    @property
    def doubtful(self) -> int:
        """The refusals for which the destination may be at fault."""
        return len(self.refused) + len(self.unnamed) - len(self.certain)

    @property
    def first_reason(self) -> str:
        return next(iter([*self.refused.values(), *self.unnamed]))


def send_in_order(
    events: Sequence[Event], send: Callable[[Sequence[Event]], Verdict], may_go_on: Callable[[], bool]
) -> Progress:
    """`may_go_on` is asked before each request but the first."""
    progress, parts = Progress(), [events]
    is_first = True
    while parts and (is_first or may_go_on()):
        is_first = False
        part = parts.pop(0)
        verdict = send(part)
        if isinstance(verdict, Delivered):
            refused = {progress.handled + place: reason for place, reason in verdict.refused.items()}
            progress.refused |= refused
            progress.certain |= refused.keys() if verdict.is_certain else set()
            progress.unnamed += verdict.unnamed
            progress.handled += len(part)
        elif not isinstance(verdict, BatchRefused):
            progress.stopped = verdict
            break
        elif len(part) > 1:
            middle = len(part) // 2
            parts[:0] = [part[:middle], part[middle:]]
        else:
            progress.refused[progress.handled] = verdict.reason
            progress.handled += 1
        if progress.doubtful >= SUSPICIOUS and not progress.accepted:
            return Progress(stopped=DestinationRefused(progress.first_reason))
    return progress

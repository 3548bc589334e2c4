"""Pure: the state of a plan, from all events of its customer. Spec: §3 Subscription · D39, D40

The provider delivers events late, twice and in any order, so a state is never changed by an event: it is computed from
the set of all events, sorted by a rule that knows nothing of their arrival. docs/decisions/0048
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby

from billing.facts import Event, Kind, Snapshot
from billing.states import PAID, SubscriptionStatus

_Place = tuple[SubscriptionStatus, bool]


@dataclass(frozen=True, slots=True)
class State:
    """One subscription, as the provider's events leave it. `past_due_since` is null unless the status is past_due."""

    status: SubscriptionStatus = SubscriptionStatus.NONE
    past_due_since: datetime | None = None
    period_end: datetime | None = None
    is_ending: bool = False
    subscription_id: str = ""


# Of several subscriptions the best one counts; the same order decides where the provider's word leaves two readings.
_WORST_FIRST = (
    SubscriptionStatus.NONE,
    SubscriptionStatus.CANCELED,
    SubscriptionStatus.INCOMPLETE,
    SubscriptionStatus.PAUSED,
    SubscriptionStatus.UNPAID,
    SubscriptionStatus.PAST_DUE,
    SubscriptionStatus.TRIALING,
    SubscriptionStatus.ACTIVE,
)
_RANK = {status: rank for rank, status in enumerate(_WORST_FIRST)}
# Within one second. A reading may be older than its second says, and nothing follows a deletion.
_PHASE = {Kind.RECONCILED: 0, Kind.SUBSCRIPTION_CREATED: 1, Kind.SUBSCRIPTION_DELETED: 3}
_OTHER_PHASE = 2
# A paid invoice ends these. The provider sends the subscription too, and either may be lost.
_RAISED_BY_PAYMENT = {
    SubscriptionStatus.NONE,
    SubscriptionStatus.INCOMPLETE,
    SubscriptionStatus.PAST_DUE,
    SubscriptionStatus.UNPAID,
}
_SETTLED = PAID | {SubscriptionStatus.CANCELED}


def fold(events: Iterable[Event]) -> State:
    """The state of the best subscription; `none` without one."""
    return max(fold_each(events).values(), key=_goodness, default=State())


def fold_each(events: Iterable[Event]) -> dict[str, State]:
    """The state of each subscription, by its id."""
    # Sorted by subscription, so that equal sets give equal dictionaries; an id that comes twice counts once.
    known = {event.id: event for event in events if event.subscription_id}
    ordered = sorted(known.values(), key=lambda event: (event.subscription_id, event.created, _phase(event), event.id))
    return {
        name: _fold_one(name, list(group)) for name, group in groupby(ordered, key=lambda each: each.subscription_id)
    }


def _fold_one(subscription_id: str, ordered: Sequence[Event]) -> State:
    walk = _Walk()
    for (created, _), group in groupby(ordered, key=lambda event: (event.created, _phase(event))):
        walk.take(created, list(group))
    return State(
        status=walk.status,
        past_due_since=_moment(walk.past_due_since),
        period_end=_moment(walk.period_end),
        is_ending=walk.is_ending,
        subscription_id=subscription_id,
    )


@dataclass(slots=True)
class _Walk:
    """One subscription's state on the way through its events. Times are seconds since the Unix epoch."""

    status: SubscriptionStatus = SubscriptionStatus.NONE
    is_ending: bool = False
    period_end: int | None = None
    past_due_since: int | None = None
    # The first failed payment since all was paid, and the invoices that are known to be unpaid since then.
    failed_at: int | None = None
    unpaid: set[str] = field(default_factory=set)

    def take(self, created: int, events: Sequence[Event]) -> None:
        """Events of one second and phase; the subscription's own object has the last word among them."""
        if self.status is SubscriptionStatus.CANCELED:
            return
        place = (self.status, self.is_ending)
        self._take_invoices(created, events)
        told = [event for event in events if event.snapshot is not None]
        if told:
            was_settled = any(_place(event)[0] in _SETTLED for event in told)
            self._take_snapshot(created, _last(told, place), was_settled=was_settled)

    def _take_invoices(self, created: int, events: Sequence[Event]) -> None:
        for event in events:
            if event.kind is Kind.INVOICE_PAYMENT_FAILED:
                self.failed_at = self.failed_at or created
                self.unpaid.add(event.invoice_id)
        for event in events:
            if event.kind is Kind.INVOICE_PAID:
                self.unpaid.discard(event.invoice_id)
                # Another unpaid invoice keeps the subscription where it is.
                if self.status in _RAISED_BY_PAYMENT and not self.unpaid:
                    self.status = SubscriptionStatus.ACTIVE
                    self._settle()

    def _take_snapshot(self, created: int, event: Event, *, was_settled: bool) -> None:
        """`was_settled`: all was paid for a moment within this second."""
        told = _snapshot(event)
        self.status, self.is_ending, self.period_end = told.status, told.is_ending, told.period_end
        if told.status in _SETTLED:
            self._settle()
        elif told.status is not SubscriptionStatus.PAST_DUE:
            self.past_due_since = None
        elif was_settled:
            self.past_due_since = self.failed_at = created
        elif self.past_due_since is None:
            self.past_due_since = self.failed_at or _failed_before(event) or created

    def _settle(self) -> None:
        self.past_due_since = self.failed_at = None
        self.unpaid.clear()


def _last(told: Sequence[Event], place: _Place) -> Event:
    """The snapshot that no other one of the same second continues.

    Each one leads from a place (status, ends by itself) to the next. In an unbroken chain the last place is the one
    that is reached more often than it is left; where none is, the chain is a circle and ends where it began.
    """
    reached, left = Counter(map(_place, told)), Counter(map(_previous_place, told))
    ends = set(reached - left) or ({place} & set(reached)) or set(reached)
    return max((event for event in told if _place(event) in ends), key=_weight)


def _place(event: Event) -> _Place:
    told = _snapshot(event)
    return told.status, told.is_ending


def _previous_place(event: Event) -> _Place:
    told = _snapshot(event)
    was_ending = told.is_ending if event.previous_is_ending is None else event.previous_is_ending
    return event.previous_status or told.status, was_ending


def _weight(event: Event) -> tuple[int, bool, int, str]:
    told = _snapshot(event)
    return _RANK[told.status], not told.is_ending, told.period_end or 0, event.id


def _failed_before(event: Event) -> int | None:
    """A reading finds a failure that nothing told: the renewal at the start of the period."""
    return _snapshot(event).period_start if event.kind is Kind.RECONCILED else None


def _snapshot(event: Event) -> Snapshot:
    if event.snapshot is None:
        raise ValueError("an event of an invoice has no snapshot")
    return event.snapshot


def _phase(event: Event) -> int:
    return _PHASE.get(event.kind, _OTHER_PHASE)


def _goodness(state: State) -> tuple[int, float, float, str]:
    since, end = state.past_due_since, state.period_end
    # Of two in their grace period, the one that has more of it left.
    return _RANK[state.status], since.timestamp() if since else 0, end.timestamp() if end else 0, state.subscription_id


def _moment(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)

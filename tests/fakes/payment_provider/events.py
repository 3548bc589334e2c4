"""Events: changes of objects, listed by the API and sent by webhooks."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.fakes.payment_provider import shapes
from tests.fakes.payment_provider.store import Json, Store


@dataclass
class Events:
    """`cause` is the API request that is being answered, or none for what the provider does by itself."""

    store: Store
    livemode: bool
    take: Callable[[Json], int]  # an event for the webhooks; returns how many endpoints will get it
    cause: Json = field(default_factory=lambda: {"id": None, "idempotency_key": None})

    def announce(self, kind: str, made: Json, previous: Json | None = None) -> None:
        """An event with the object as it is now."""
        event = shapes.event(
            self.store.clock.now(),
            self.livemode,
            kind,
            copy.deepcopy(made),
            previous,
            pending_webhooks=0,
            request=dict(self.cause),
        )
        self.store.add(event)
        event["pending_webhooks"] = self.take(event)

    @contextlib.contextmanager
    def changing(self, made: Json, kind: str) -> Iterator[None]:
        """An event of this kind with the members that the block changed; without a change there is none."""
        before = copy.deepcopy(made)
        yield
        if previous := differences(before, made):
            self.announce(kind, made, previous)


def differences(before: Json, after: Json) -> Json:
    """The former values of all that changed; of an object inside, only what changed in it."""
    found: Json = {}
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        found[name] = differences(old, new) if isinstance(old, dict) and isinstance(new, dict) else old
    return found

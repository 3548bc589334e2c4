"""All objects in memory, by kind and id, and the provider's own clock."""

from __future__ import annotations

import secrets
import string
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.payment_provider.errors import invalid, no_such
from tests.fakes.payment_provider.form import Fields

Json = dict[str, Any]
_LETTERS = string.ascii_letters + string.digits
_KIND_OF_PREFIX = {
    "cus": "customer",
    "prod": "product",
    "price": "price",
    "promo": "promotion_code",
    "di": "discount",
    "cs": "checkout.session",
    "bps": "billing_portal.session",
    "sub": "subscription",
    "in": "invoice",
    "evt": "event",
}


def new_id(prefix: str) -> str:
    return f"{prefix}_{''.join(secrets.choice(_LETTERS) for _ in range(24))}"


@dataclass
class Clock:
    """The computer's, moved by `offset_s`: tests let weeks pass."""

    offset_s: float = 0.0
    frozen_at: int | None = None  # while the past is gone through moment by moment

    def now(self) -> int:
        """Unix time in whole seconds, as every `created` of the provider."""
        return self.frozen_at if self.frozen_at is not None else int(time.time() + self.offset_s)


@dataclass
class Store:
    clock: Clock = field(default_factory=Clock)
    tables: dict[str, dict[str, Json]] = field(default_factory=dict)

    def add(self, made: Json) -> Json:
        self.tables.setdefault(made["object"], {})[made["id"]] = made
        return made

    def all(self, kind: str) -> list[Json]:
        """In the order of their making."""
        return list(self.tables.get(kind, {}).values())

    def find(self, id_: str) -> Json | None:
        """The object of any kind whose id says what it is."""
        return self.tables.get(_KIND_OF_PREFIX.get(id_.partition("_")[0], "coupon"), {}).get(id_)

    def get(self, kind: str, id_: str, param: str = "id", *, status: int = 404) -> Json:
        """Raises: Refusal, with 404 for an object of the path; 400 is for those that parameters name."""
        found = self.tables.get(kind, {}).get(id_)
        if found is None:
            raise no_such(kind.replace(".", " ").replace("_", " "), id_, param, status)
        return found

    def page(self, kind: str, path: str, fields: Fields, keeps: Callable[[Json], bool]) -> Json:
        """The newest first, as every list of the provider; raises: Refusal."""
        limit = fields.number("limit") if fields.has("limit") else 10
        if limit is None or not 1 <= limit <= 100:
            raise invalid("limit", "This value must be between 1 and 100.", "parameter_invalid_integer")
        found = [each for each in reversed(self.all(kind)) if keeps(each) and _in_range(each, fields)]
        after, before = fields.text("starting_after"), fields.text("ending_before")
        if after is not None:
            found = found[_place(found, kind, after, "starting_after") + 1 :]
        if before is not None:
            found = found[: _place(found, kind, before, "ending_before")]
            return {"object": "list", "data": found[-limit:], "has_more": len(found) > limit, "url": path}
        return {"object": "list", "data": found[:limit], "has_more": len(found) > limit, "url": path}


def _place(found: list[Json], kind: str, id_: str, param: str) -> int:
    for place, each in enumerate(found):
        if each["id"] == id_:
            return place
    raise no_such(kind, id_, param)


def _in_range(made: Json, fields: Fields) -> bool:
    given = fields.values.get("created")
    if given is None:
        return True
    if isinstance(given, str):
        return bool(made["created"] == fields.number("created"))
    bounds = fields.inner("created")
    bounds.only("gt", "gte", "lt", "lte")
    gt, gte, lt, lte = (bounds.number(name) for name in ("gt", "gte", "lt", "lte"))
    created: int = made["created"]
    return (
        (gt is None or created > gt)
        and (gte is None or created >= gte)
        and (lt is None or created < lt)
        and (lte is None or created <= lte)
    )

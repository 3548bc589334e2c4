"""The operation that answers a request, and the means that every operation has."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from tests.fakes.payment_provider.billing import Billing
from tests.fakes.payment_provider.checkout import Checkout
from tests.fakes.payment_provider.errors import Refusal
from tests.fakes.payment_provider.form import Fields
from tests.fakes.payment_provider.store import Json, Store

PAGE = ("created", "ending_before", "expand", "limit", "starting_after")


@dataclass
class Api:
    """The parts of the provider that operations work on."""

    billing: Billing
    checkout: Checkout
    account: Json

    @property
    def store(self) -> Store:
        return self.billing.store


@dataclass
class Call:
    """One request: the identifier of its path, if it has one, and its parameters."""

    api: Api
    path: str
    fields: Fields
    id: str = ""

    @property
    def store(self) -> Store:
        return self.api.store

    @property
    def made(self) -> tuple[int, bool]:
        """The moment and the mode that new objects carry."""
        return self.store.clock.now(), self.api.billing.livemode

    def announce(self, kind: str, made: Json) -> Json:
        self.api.billing.events.announce(kind, made)
        return made


Operation = Callable[[Call], Json]


@dataclass
class Route:
    method: str
    pattern: re.Pattern[str]
    operation: Operation


ROUTES: list[Route] = []


def route(method: str, path: str) -> Callable[[Operation], Operation]:
    """`{id}` in the path is one part of it."""

    def enter(operation: Operation) -> Operation:
        pattern = re.compile(re.escape(path).replace(r"\{id\}", "(?P<id>[^/]+)"))
        ROUTES.append(Route(method, pattern, operation))
        return operation

    return enter


def found(method: str, path: str) -> tuple[Operation, str]:
    """The operation of a request and the identifier in its path, which is still quoted. Raises: Refusal."""
    for each in ROUTES:
        match = each.pattern.fullmatch(path)
        if match is not None and each.method == method:
            return each.operation, unquote(match.groupdict().get("id", ""))
    message = f"Unrecognized request URL ({method}: {path}). Please see https://stripe.com/docs"
    raise Refusal(404, message, begun=False)


def listed(call: Call, kind: str, filters: tuple[str, ...], keeps: Callable[[Json], bool] = lambda each: True) -> Json:
    """Filters that are plain members are compared here. Raises: Refusal, also for a customer that never was."""
    call.fields.only(*PAGE, *filters)
    customer = call.fields.text("customer") if "customer" in filters else None
    if customer is not None:
        call.store.get("customer", customer, "customer", status=400)  # a deleted one still has its past
    plain = {name: call.fields.text(name) for name in filters}

    def is_wanted(each: Json) -> bool:
        alike = all(value is None or name not in each or _spelt(each[name]) == value for name, value in plain.items())
        return alike and keeps(each)

    return call.store.page(kind, call.path, call.fields, is_wanted)


def _spelt(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def retrieved(call: Call, kind: str) -> Json:
    call.fields.only("expand")
    return call.store.get(kind, call.id)

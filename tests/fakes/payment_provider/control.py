"""The wishes of a test, as routes of the stand-in: POST /_control/<name> with a JSON object, answered with one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.fakes.payment_provider.faults import Fault
from tests.fakes.payment_provider.passing_time import advance
from tests.fakes.payment_provider.provider import Provider
from tests.fakes.payment_provider.store import Json
from tests.fakes.payment_provider.webhooks import Endpoint

Control = Callable[[Provider, Json], Awaitable[Json]]
CONTROLS: dict[str, Control] = {}


def control(function: Control) -> Control:
    """Enter a function into the table under its name."""
    CONTROLS[function.__name__] = function
    return function


@control
async def begin_again(provider: Provider, given: Json) -> Json:
    """All is as at the start of the process; deliveries that are on their way are given up."""
    await provider.sender.close()
    provider.begin()
    return {}


@control
async def endpoints(provider: Provider, given: Json) -> Json:
    """`endpoints`: those of webhooks.Endpoint, in place of all before."""
    provider.sender.endpoints = [Endpoint(**each) for each in given["endpoints"]]
    return {}


@control
async def delivery(provider: Provider, given: Json) -> Json:
    """Rules of webhooks.Rules; those that are not named stay."""
    provider.sender.set_rules(given)
    return asdict(provider.sender.rules)


@control
async def release(provider: Provider, given: Json) -> Json:
    """All that was held is delivered, in `order`. Later events are held still, until the rule changes."""
    provider.sender.release(given.get("order"))
    return {}


@control
async def resend(provider: Provider, given: Json) -> Json:
    """`events`: identifiers, or all. `secrets` and `signed_ago_s` make signatures that are wrong or old."""
    wanted = given.get("events")
    events = [each for each in provider.api.store.all("event") if wanted is None or each["id"] in wanted]
    provider.sender.resend(events, given.get("secrets"), given.get("signed_ago_s", 0))
    return {"events": len(events)}


@control
async def settle(provider: Provider, given: Json) -> Json:
    """Answers once nothing is on its way: the attempts so far, and the events that are held or lost."""
    while provider.sender.busy:
        await asyncio.sleep(0.01)
    return {
        "deliveries": [asdict(each) for each in provider.sender.deliveries],
        "held": [each.event["id"] for each in provider.sender.held],
        "lost": list(provider.sender.lost),
    }


@control
async def clock(provider: Provider, given: Json) -> Json:
    """`offset_s` sets the clock without a look at what becomes due; `advance_s` lets time pass."""
    if "offset_s" in given:
        provider.api.store.clock.offset_s = given["offset_s"]
    advance(provider.api.billing, provider.api.checkout, given.get("advance_s", 0))
    return {"now": provider.api.store.clock.now()}


@control
async def policy(provider: Provider, given: Json) -> Json:
    """Settings of billing.Policy; those that are not named stay."""
    for name, value in given.items():
        assert hasattr(provider.api.billing.policy, name), name
        setattr(provider.api.billing.policy, name, value)
    return asdict(provider.api.billing.policy)


@control
async def card(provider: Provider, given: Json) -> Json:
    """The `customer` pays with `card` from now on."""
    provider.api.billing.cards[given["customer"]] = given["card"]
    return {}


@control
async def fault(provider: Provider, given: Json) -> Json:
    """A fault of faults.Fault for the next requests."""
    provider.faults.append(Fault(**given))
    return {}


@control
async def heal(provider: Provider, given: Json) -> Json:
    """No fault is left."""
    provider.faults.clear()
    return {}


@control
async def requests(provider: Provider, given: Json) -> Json:
    """Requests to the API so far, without their credentials."""
    return {"requests": [asdict(each) for each in provider.requests]}


def control_route(provider: Provider) -> Route:
    """The route of all controls, for the application of a provider."""

    async def answer(request: Request) -> Response:
        found = CONTROLS.get(request.path_params["name"])
        if found is None:
            return JSONResponse({"error": "not_found"}, 404)
        return JSONResponse(await found(provider, json.loads(await request.body() or b"{}")))

    return Route("/_control/{name}", answer, methods=["POST"])

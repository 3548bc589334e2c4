"""The stand-in as a whole: an ASGI application that speaks the payment provider's HTTP API, on state in memory."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.fakes.payment_provider import catalog_operations, operations, pages, shapes  # noqa: F401 - enter their routes
from tests.fakes.payment_provider.billing import Billing
from tests.fakes.payment_provider.checkout import Checkout
from tests.fakes.payment_provider.errors import Refusal, invalid
from tests.fakes.payment_provider.events import Events
from tests.fakes.payment_provider.expanding import expanded
from tests.fakes.payment_provider.faults import LED_TO, Fault
from tests.fakes.payment_provider.form import Fields, parsed
from tests.fakes.payment_provider.idempotency import IdempotencyKeys
from tests.fakes.payment_provider.routing import Api, Call, found
from tests.fakes.payment_provider.store import Json, Store, new_id
from tests.fakes.payment_provider.versions import as_of, checked
from tests.fakes.payment_provider.webhooks import Sender

MOST_BODY_BYTES = 1024 * 1024


@dataclass
class Seen:
    """A request to the API."""

    method: str
    path: str
    parameters: Json
    version: str
    idempotency_key: str | None
    status: int = 0
    replayed: bool = False


@dataclass
class Settings:
    """`price_id` names a monthly price that is there from the start."""

    origin: str
    secret_key: str = field(repr=False)
    account_id: str = "acct_standin00000001"
    price_id: str = "price_flat"


class Provider:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.begin()

    def begin(self) -> None:
        """Nothing has happened yet: the price of the settings, no customer, no endpoint, the computer's clock."""
        settings = self.settings
        self.sender = Sender()
        livemode = settings.secret_key.startswith(("sk_live_", "rk_live_"))
        store = Store()
        billing = Billing(store, Events(store, livemode, self.sender.take), livemode)
        account = shapes.account(settings.account_id)
        self.api = Api(billing, Checkout(billing, settings.origin), account)
        self.keys = IdempotencyKeys()
        self.faults: list[Fault] = []
        self.requests: list[Seen] = []
        self._sell(store, livemode)

    def app(self, *more: Route) -> Starlette:
        """The ASGI application, with `more` routes."""
        methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
        routes = [
            Route("/v1/{path:path}", self._answer, methods=methods),
            Route("/c/pay/{id}", self._page(pages.checkout_page), methods=["GET", "POST"]),
            Route("/p/session/{id}", self._page(pages.portal_page), methods=["GET", "POST"]),
            Route("/healthz", self._health),
            Route(LED_TO, self._led_astray, methods=methods),
            *more,
        ]
        return Starlette(routes=routes, lifespan=self._life)

    @asynccontextmanager
    async def _life(self, app: Starlette) -> AsyncIterator[None]:
        yield
        await self.sender.close()

    def _sell(self, store: Store, livemode: bool) -> None:
        now = store.clock.now()
        rest = {"active": True, "metadata": {}}
        product = shapes.product(now, livemode, "prod_gateway", description=None, name="Gateway", **rest)
        given = {**rest, "currency": "usd", "lookup_key": None, "nickname": "Gateway, monthly"}
        price = shapes.price(
            now,
            livemode,
            interval="month",
            count=1,
            id_=self.settings.price_id,
            product=product["id"],
            unit_amount=9_900,
            **given,
        )
        store.add(product)
        store.add(price)

    async def _answer(self, request: Request) -> Response:
        """One request to the API, with a fault if one is waiting for it."""
        request_id = new_id("req")
        body = await request.body()
        path = request.scope["raw_path"].decode("ascii").partition("?")[0]
        seen = Seen(request.method, path, {}, "", request.headers.get("Idempotency-Key"))
        self.requests.append(seen)
        fault = self._fault(request)
        if fault is None or fault.answers_well or fault.works:
            status, content, replayed_id = await self._carried_out(request, body, seen, request_id, fault)
        if fault is not None and not fault.answers_well:
            await fault.wait()
            return fault.answer()
        seen.status, seen.replayed = status, replayed_id is not None
        headers = {"Request-Id": request_id, "Stripe-Version": seen.version, "Date": self._date()}
        if seen.idempotency_key:
            headers["Idempotency-Key"] = seen.idempotency_key
        if replayed_id is not None:
            headers |= {"Idempotent-Replayed": "true", "Original-Request": replayed_id}
        if status == 401:
            headers["WWW-Authenticate"] = 'Basic realm="Stripe"'
        return Response(content, status, headers=headers, media_type="application/json")

    async def _carried_out(
        self, request: Request, body: bytes, seen: Seen, request_id: str, fault: Fault | None
    ) -> tuple[int, bytes, str | None]:
        """Status, body, and the identifier of the request that they were first given to."""
        key = seen.idempotency_key if request.method == "POST" else None
        in_use = False
        try:
            self._authenticate(request)
            seen.version = checked(request.headers.get("Stripe-Version", shapes.API_VERSION))
            fields = Fields(_parameters(request, body))
            seen.parameters = fields.values
            if key is not None:
                whole = (request.method, request.url.path, f"{request.url.query}\n{body.decode(errors='replace')}")
                kept = self.keys.begin(key, whole, self.api.store.clock.now(), request_id)
                if kept is not None and kept.answer is not None:
                    return *kept.answer, kept.request_id
                in_use = True
            if fault is not None:
                await fault.wait()
            answer = (200, _json(self._perform(request, fields, seen, request_id)))
        except Refusal as refusal:
            answer = (refusal.status, _json(refusal.body(request_id)))
            if in_use and key is not None and not refusal.begun:
                self.keys.forget(key)
                in_use = False
        if in_use and key is not None:
            self.keys.finish(key, answer)
        return *answer, None

    def _perform(self, request: Request, fields: Fields, seen: Seen, request_id: str) -> Json:
        operation, id_ = found(request.method, seen.path)
        expand = fields.texts("expand")
        events = self.api.billing.events
        events.cause = {"id": request_id, "idempotency_key": seen.idempotency_key}
        try:
            made = operation(Call(self.api, request.url.path, fields, id_))
        finally:
            events.cause = {"id": None, "idempotency_key": None}
        shaped: Json = as_of(seen.version, expanded(self.api, made, expand))
        return shaped

    def _authenticate(self, request: Request) -> None:
        """Raises: Refusal unless the secret key is the bearer token or the user name."""
        scheme, _, value = request.headers.get("Authorization", "").partition(" ")
        given = value.strip()
        if scheme.lower() == "basic":
            given = base64.b64decode(given.encode(), validate=False).decode(errors="replace").partition(":")[0]
        if not given or scheme.lower() not in ("basic", "bearer"):
            message = "You did not provide an API key. You need to provide your API key in the Authorization header."
            raise Refusal(401, message, begun=False)
        if not hmac.compare_digest(given.encode(), self.settings.secret_key.encode()):
            raise Refusal(401, f"Invalid API Key provided: {given[:8]}****{given[-4:]}", begun=False)

    def _fault(self, request: Request) -> Fault | None:
        for fault in self.faults:
            if fault.meets(request.method, request.url.path):
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
                return fault
        return None

    def _date(self) -> str:
        # The provider's clock, which a test may have moved: an answer is as old as its objects.
        return formatdate(self.api.store.clock.now(), usegmt=True)

    def _page(self, page: Any) -> Any:
        async def answer(request: Request) -> Response:
            answered: Response = await page(request, self.api)
            return answered

        return answer

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _led_astray(self, request: Request) -> Response:
        """A client that follows a redirect is seen here."""
        self.requests.append(Seen(request.method, LED_TO, {}, "", None, 200))
        return JSONResponse({"object": "followed"})


def _parameters(request: Request, body: bytes) -> Json:
    """Raises: Refusal for a body that is no form."""
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip()
    if body and kind != "application/x-www-form-urlencoded":
        raise invalid(None, f"Invalid request (check that your POST content type is a form's), not {kind}")
    if len(body) > MOST_BODY_BYTES:
        raise Refusal(413, "The request is too large.", begun=False)
    try:
        return parsed(body.decode() or request.url.query)
    except (UnicodeDecodeError, ValueError):
        raise invalid(None, "The request body is no form.") from None


def _json(made: Json) -> bytes:
    return json.dumps(made, indent=2).encode()

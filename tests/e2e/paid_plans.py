"""A gateway of two web servers whose plans a payment provider decides, and organizations that pay for theirs."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, Operator, Web, deployment
from tests.fakes.payment_provider.running import PRICE_ID, SECRET_KEY, PaymentProvider, payment_provider
from tests.vendors.processes import free_port

WEBHOOK = "/api/webhooks/stripe"
SECRETS = ("whsec_of_the_first_server", "whsec_of_the_second_server")
# Each server gets every event, the second one in the shape of an older version.
VERSIONS = ("2026-08-26.dahlia", "2024-06-20")


@dataclass
class Stage:
    """All that runs: two web servers on one database, an operator, and the provider that both servers ask."""

    deployment: Deployment
    operator: Operator
    webs: tuple[Web, Web]
    provider: PaymentProvider
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def begin_again(self) -> None:
        """Provider and gateway have forgotten all plans, and the provider sends its events to both servers."""
        self.operator.run("forget_plans")
        self.forget_customers()

    def forget_customers(self) -> None:
        """The provider knows no customer, as one whose secret key is that of another account."""
        self.provider.control("begin_again")
        self.send_events_to(0, 1)
        self.provider.control("delivery", parallel=4)

    def send_events_to(self, *numbers: int) -> None:
        """Each of these servers gets every event."""
        endpoints = [
            {
                "url": f"{self.webs[number].origin}{WEBHOOK}",
                "secrets": [SECRETS[number]],
                "api_version": VERSIONS[number],
            }
            for number in numbers
        ]
        self.provider.control("endpoints", endpoints=endpoints)

    def settle(self) -> None:
        """Every event on its way has arrived, and both servers took it at the first attempt."""
        refused = [each for each in self.provider.settle()["deliveries"] if each["status"] != 200]
        assert refused == [], self.logs()

    def new_tenant(self) -> Tenant:
        """An organization of its own, never subscribed."""
        org_id = self.operator.run("create_organization", name=f"Paying{next(self._numbers)}")
        return Tenant(self, org_id, self.operator.run("sign_in_owner", org_id=org_id))

    def stripe(self, method: str, path: str, **data: Any) -> dict[str, Any]:
        """An answer of the provider's API."""
        where = {"params": data} if method == "GET" else {"data": data}
        answer = self.provider.http.request(method, f"/v1/{path}", auth=(SECRET_KEY, ""), **where)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def logs(self) -> str:
        """The end of what both servers have written."""
        return "\n".join(web.log()[-4_000:] for web in self.webs)


@dataclass
class Tenant:
    """An organization and its owner's session."""

    stage: Stage
    org_id: str
    cookie: str = field(repr=False)

    def ask(self, web: int, method: str, path: str, body: Any = None) -> httpx.Response:
        """A request of the owner to one of the servers."""
        with self.stage.webs[web].client(cookies={"gateway_session": self.cookie}) as client:
            return client.request(method, f"/api/{path}", json=body)

    def checkout(self, web: int = 0, **body: Any) -> httpx.Response:
        return self.ask(web, "POST", "billing/checkout", {"org_id": self.org_id, **body})

    def checkout_url(self, web: int = 0, **body: Any) -> str:
        answer = self.checkout(web, **body)
        assert answer.status_code == 200, (answer.text, self.stage.logs())
        return str(answer.json()["url"])

    def portal_url(self, web: int = 0) -> str:
        answer = self.ask(web, "POST", "billing/portal", {"org_id": self.org_id})
        assert answer.status_code == 200, (answer.text, self.stage.logs())
        return str(answer.json()["url"])

    def subscribe(self, **body: Any) -> str:
        """The identifier of a subscription that was paid; its events are on their way."""
        url = self.checkout_url(**body)
        answer = self.stage.provider.pay(url)
        assert answer.status_code == 303, answer.text
        return str(self.stage.stripe("GET", f"checkout/sessions/{url.rpartition('/')[2]}")["subscription"])

    @property
    def customer(self) -> str:
        """The provider's customer of this organization; there is one."""
        rows = [row for row in self._customers() if row["metadata"].get("organization_id") == self.org_id]
        (found,) = rows
        return str(found["id"])

    def _customers(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.stage.stripe("GET", "customers", limit=100)["data"]
        return listed

    def plan(self) -> str:
        """`active` or `lapsed`, which both servers say by a route that needs a plan and by one that does not."""
        said = {self._said_by(web) for web in range(len(self.stage.webs))}
        assert len(said) == 1, said
        return said.pop()

    def _said_by(self, web: int) -> str:
        gated = self.ask(web, "GET", f"audit?org_id={self.org_id}")
        free = self.ask(web, "GET", f"orgs/{self.org_id}")
        assert free.status_code == 200, free.text
        state: str = free.json()["subscriptionStatus"]
        expected = {"active": (200, None), "lapsed": (402, "subscription_required")}[state]
        assert (gated.status_code, gated.json().get("error")) == expected, gated.text
        return state

    def row(self, *columns: str) -> tuple[Any, ...]:
        """Columns of the stored subscription."""
        key = self.org_id if not self.stage.deployment.database.is_sqlite else self.org_id.replace("-", "")
        sql = f"SELECT {', '.join(columns)} FROM billing_subscription WHERE organization_id = '{key}'"
        (found,) = self.stage.deployment.database.select(sql)
        return found

    def events(self) -> int:
        """The number of stored events."""
        key = self.org_id if not self.stage.deployment.database.is_sqlite else self.org_id.replace("-", "")
        sql = f"SELECT COUNT(*) FROM billing_providerevent WHERE organization_id = '{key}'"
        return int(self.stage.deployment.database.select(sql)[0][0])


@contextlib.contextmanager
def paid_plans(template: Template, folder: Path) -> Iterator[Stage]:
    """Everything started, with an empty database."""
    with contextlib.ExitStack() as stack:
        provider = stack.enter_context(payment_provider())
        variables = {
            "BILLING_MODE": "stripe",
            "STRIPE_SECRET_KEY": SECRET_KEY,
            "STRIPE_WEBHOOK_SECRET": ",".join(SECRETS),
            "STRIPE_API_BASE": provider.url,
            "STRIPE_PRICE_ID": PRICE_ID,
            "WEB_PROCESSES": "2",
        }
        made = stack.enter_context(deployment(template, folder, variables=variables))
        # Tables that only this mode has.
        made.manage("migrate", "--verbosity", "0")
        operator = stack.enter_context(made.operator())
        first = stack.enter_context(made.web())
        second = stack.enter_context(made.web(port=free_port()))
        yield Stage(made, operator, (first, second), provider)

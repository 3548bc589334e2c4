"""The product where people sign in at the demo identity provider, with the demo vendor behind it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.clients.browser import Browser
from tests.e2e import agent
from tests.e2e.agent import ServiceClient
from tests.e2e.gateway_process import Deployment, Operator, Web
from tests.vendors.servers import DemoVendor


@dataclass(frozen=True)
class Person:
    """The owner of an organization that is connected to the demo vendor, and a service client there, named `bot`.

    `fingerprint` is what the vendor says of the organization's key: it tells whose tools a client has called.
    """

    email: str
    service_client: ServiceClient
    bot: str
    fingerprint: str


@dataclass
class SignInGateway:
    """A start of the product, where anybody can sign in, and an operator on its data."""

    deployment: Deployment
    web: Web
    operator: Operator
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def mcp_url(self) -> str:
        """The unified endpoint."""
        return self.web.mcp_url

    def new_person(self) -> Person:
        """A person with an organization of their own, who has not signed in yet."""
        name = f"Team{next(self._numbers)}"
        bot = f"bot of {name}"
        org_id = self.operator.run("create_organization", name=name)
        self.operator.run("connect_vendor", org_id=org_id, vendor="acme", fields={"apiKey": DemoVendor.new_api_key()})
        service_client = ServiceClient(org_id, **self.operator.run("create_service_client", org_id=org_id, name=bot))
        with self.web.client() as client:
            seen = agent.result(agent.call(client, service_client.agent_key, "acme_whoami"))
        # The first sign-in with this address becomes the owner, whom the operation has made.
        fingerprint = seen["structuredContent"]["key_fingerprint"]
        return Person(f"{name.lower()}@example.com", service_client, bot, fingerprint)

    def browser(self, person: Person | str) -> Browser:
        """A signed-out browser of the person, or of whoever has the address."""
        return Browser(self.web.origin, person if isinstance(person, str) else person.email)

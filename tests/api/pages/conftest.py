"""The cast's first organization with one vendor in the catalog and one service client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import Client as Browser
from django.urls import reverse

from credentials.vendor_check import ProbeAnswer
from oauth_ext.models import AgentKey, Client
from proxy.vendors import credential_probe
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, load_vendor, make_tenant

SCRIPT = "<script>alert(1)</script>"
INERT = "&lt;script&gt;alert(1)&lt;/script&gt;"


@dataclass
class Site:
    """Addresses and browsers. `vendor_status` is what the vendor answers when credentials are checked."""

    cast: Cast
    tenant: Tenant
    vendor_status: int | None = 200
    asked: list[dict[str, str]] = field(default_factory=list)

    def path(self, name: str, *more: str) -> str:
        """The address of a page of the organization."""
        return reverse(name, args=[self.cast.org.id, *more])

    def client_path(self, name: str) -> str:
        """The address of a page of the service client."""
        return self.path(f"oauth_pages:{name}", self.tenant.client.client_id)

    def owner(self) -> Browser:
        """The owner's browser."""
        return self.cast.client("owner")

    async def answer_probe(self, url: str, headers: Mapping[str, str], *question: object) -> ProbeAnswer:
        """The transport to the vendor, without a network."""
        self.asked.append(dict(headers))
        return ProbeAnswer(self.vendor_status, tools_listed=self.vendor_status == 200)


@pytest.fixture
def site(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A signed-in world with a vendor `fake` that needs one API key."""
    load_vendor("http://127.0.0.1:9/mcp")
    made = Site(cast, make_tenant(cast.org, cast.user("owner")))
    monkeypatch.setattr(credential_probe, "probe_credentials", made.answer_probe)
    return made


def key_prefix(client: Client) -> str | None:
    """The prefix of the service client's agent key, None without one."""
    row = AgentKey.objects.filter(client=client).first()
    return row.prefix if row else None


def text(response: Any) -> str:
    """The page."""
    return str(response.content.decode())


def hidden(response: Any, name: str) -> str:
    """The value of the first hidden field called `name`."""
    found = re.search(rf'name="{name}" value="([^"]+)"', text(response))
    assert found is not None, name
    return found[1]


def notices(response: Any) -> list[str]:
    """The messages at the top of the page."""
    return [str(message) for message in response.context["messages"]]

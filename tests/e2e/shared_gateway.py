"""One gateway with its vendors, which tests share: each takes an organization of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from demo.catalog import render_catalog
from tests.e2e.agent import ServiceClient
from tests.e2e.gateway_process import Deployment, Operator, Web
from tests.vendors.servers import DemoVendor

KEYLESS_VENDOR = """
[[vendor]]
slug = "{slug}"
name = "{name}"
url = "{url}"
tool_prefix = "{slug}"
docs_url = "https://vendor.example/docs"
timeout_seconds = 20
"""


@dataclass
class Gateway:
    """A deployment with one web server, an operator, and the vendors of its catalog."""

    deployment: Deployment
    web: Web
    operator: Operator
    vendors: Sequence[str]
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def new_service_client(self, fields: Mapping[str, dict[str, str]] | None = None) -> ServiceClient:
        """A service client of a new organization that is connected to every vendor, or to those of `fields`."""
        number = next(self._numbers)
        org_id = self.operator.run("create_organization", name=f"Org{number}")
        for vendor, values in (fields if fields is not None else self._default_fields()).items():
            self.operator.run("connect_vendor", org_id=org_id, vendor=vendor, fields=values)
        made = self.operator.run("create_service_client", org_id=org_id, name=f"bot {number}")
        return ServiceClient(org_id=org_id, **made)

    def _default_fields(self) -> dict[str, dict[str, str]]:
        return {vendor: {"apiKey": DemoVendor.new_api_key()} if vendor == "acme" else {} for vendor in self.vendors}


def acme_catalog(vendor: DemoVendor) -> str:
    """The catalog entry of a running demo vendor."""
    port = urlsplit(vendor.mcp_url).port
    assert port is not None
    return render_catalog(port)


def keyless_catalog(slug: str, url: str, more: str = "") -> str:
    """The catalog entry of a vendor that wants no credentials."""
    return KEYLESS_VENDOR.format(slug=slug, name=slug.title(), url=url) + more

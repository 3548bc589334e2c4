"""The steps of a run that need Django, each in a process of its own with the gateway's environment.

`python -m bench.preparation prepare --catalog FILE --vendor-key KEY` makes the database, the catalog, organizations and
service clients, all with the product's own services; `python -m bench.preparation count` counts the audit rows.
The answer is one JSON line on standard output.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.targets import LISTED_VENDORS, VENDOR_SLUG, listed_slug
from bench.vendor_answers import KEPT_TOOL, READ_TOOL
from gateway.supervisor.preparation import load_catalogs, load_settings, migrate_database

ORGANIZATIONS = 2
CLIENTS_PER_ORGANIZATION = 4
KEPT_S = 300
CALLERS = ORGANIZATIONS * CLIENTS_PER_ORGANIZATION


def catalog(vendor_url: str, slug: str = VENDOR_SLUG) -> str:
    """Pure: the catalog file that names the stand-in vendor."""
    return f"""
[[vendor]]
slug = "{slug}"
name = "Bench vendor"
url = "{vendor_url}"
category = "bench"
timeout_seconds = 30
[[vendor.headers]]
name = "X-Bench-Key"
value = "{{apiKey}}"
[[vendor.fields]]
name = "apiKey"
label = "API key"
secret = true
required = true
# What is measured is the way to the vendor, not the cache of results.
[vendor.tools.{READ_TOOL}]
ttl_seconds = 0
"""


def kept_tool() -> dict[str, str]:
    """Pure: the setting that keeps the results of one tool. On the MCP route an operator must name the tool."""
    return {"VENDOR_TOOL_CONFIG": json.dumps({VENDOR_SLUG: {"tools": {KEPT_TOOL: {"ttl": KEPT_S}}}})}


def listed_catalog(vendor_url: str) -> str:
    """Pure: the catalog file of the vendors whose tools are listed."""
    return "\n".join(catalog(f"{vendor_url}/list/{number}", listed_slug(number)) for number in range(LISTED_VENDORS))


def prepare(catalog_files: list[Path], vendor_key: str, *, lists: bool = False) -> dict[str, Any]:
    """The database holds organizations with a credential and service clients, whose secrets are returned.

    With `lists` there is one more organization, with a credential for each vendor whose tools are listed.
    """
    migrate_database()
    load_catalogs(catalog_files)
    from django.db import transaction

    from orgs.models import User

    with transaction.atomic():
        owner = User.objects.create_user(email="owner@bench.example", display_name="Bench Owner")
        organizations = [_organization(owner, number, vendor_key) for number in range(ORGANIZATIONS)]
        slugs = [listed_slug(number) for number in range(LISTED_VENDORS)]
        listed = [_organization(owner, ORGANIZATIONS, vendor_key, slugs)] if lists else []
    # One client of each organization in turn, so that neighbouring connections are of different organizations.
    clients = [client for row in zip(*(each["clients"] for each in organizations), strict=True) for client in row]
    return {
        "own_ids": [str(owner.pk), *(each["id"] for each in (*organizations, *listed))],
        "clients": clients,
        "list_clients": [client for each in listed for client in each["clients"]],
    }


def _organization(owner: Any, number: int, vendor_key: str, slugs: Sequence[str] = ()) -> dict[str, Any]:
    """With a credential for each of these vendors, or for VENDOR_SLUG."""
    from credentials.credential_scope import CredentialScope
    from credentials.services.credentials import store_credential
    from gateway.catalog import registry
    from orgs.services.organizations import create_organization

    organization = create_organization(actor=owner, name=f"Bench organization {number + 1}")
    for slug in slugs or (VENDOR_SLUG,):
        store_credential(
            actor=owner,
            organization=organization,
            vendor=registry.known_vendor(slug),
            scope=CredentialScope.ORGANIZATION,
            fields={"apiKey": vendor_key},
        )
    clients = [_client(owner, organization, index) for index in range(CLIENTS_PER_ORGANIZATION)]
    return {"id": str(organization.id), "clients": clients}


def _client(owner: Any, organization: Any, index: int) -> dict[str, str]:
    from oauth_ext.services.agent_keys import mint_agent_key
    from oauth_ext.services.service_clients import create_service_client

    created = create_service_client(actor=owner, organization=organization, name=f"Bench client {index + 1}")
    minted = mint_agent_key(actor=owner, client=created.client)
    return {
        "client_id": created.client.client_id,
        "client_secret": created.client_secret,
        "agent_key": minted.agent_key,
    }


def count() -> dict[str, Any]:
    """How many audit rows of calls there are, by route and ending."""
    from django.db.models import Count

    from audit.models import RequestAuditEntry

    rows = RequestAuditEntry.objects.order_by().values_list("source", "status").annotate(rows=Count("pk"))
    return {"rows": {f"{source} {status}": number for source, status, number in rows}}


def main() -> int:
    """Do one step."""
    parser = argparse.ArgumentParser(prog="python -m bench.preparation")
    parser.add_argument("step", choices=["prepare", "count"])
    parser.add_argument("--catalog", type=Path, action="append", default=[])
    parser.add_argument("--lists", action="store_true")
    parser.add_argument("--vendor-key", default="")
    options = parser.parse_args()
    load_settings()
    answer = count() if options.step == "count" else prepare(options.catalog, options.vendor_key, lists=options.lists)
    print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

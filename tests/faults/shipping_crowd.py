"""Programs of `tests.faults.shipping_silent_destinations`, in the service's environment.

`prepare VENDOR_URL` connects an organization to a vendor, which is probed from then on, and prints its id.
`destinations NAME URL NUMBER ORG ...` gives the organizations so many destinations, URL/NAME-0 and on, in turn.
`write FILE RATE ORG ...` commits a call of each organization RATE times a second until it is ended.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Sequence

import django

CATALOG = """
[[vendor]]
slug = "probed"
name = "Probed vendor"
url = "{url}"
docs_url = "https://vendor.example/docs"
timeout_seconds = 10
"""


def prepare(vendor_url: str) -> uuid.UUID:
    from credentials.credential_scope import CredentialScope
    from credentials.services.credentials import store_credential
    from gateway.catalog import registry
    from orgs.models import User
    from orgs.services.organizations import create_organization
    from tests.factories.catalog_text import load_catalog

    load_catalog(CATALOG.format(url=vendor_url), "probed vendor")
    vendor = registry.load().get("probed")
    assert vendor is not None
    owner = User.objects.create_user(email="owner@faults.example", display_name="Ana")
    organization = create_organization(actor=owner, name="Good")
    store_credential(
        actor=owner, organization=organization, vendor=vendor, scope=CredentialScope.ORGANIZATION, fields={}
    )
    return organization.pk


def add_destinations(name: str, url: str, number: int, orgs: Sequence[uuid.UUID]) -> None:
    from django.db import transaction

    from audit.actor import system
    from audit.shipping import destinations

    for place in range(number):
        with transaction.atomic():
            destinations.create(
                org_id=orgs[place % len(orgs)],
                actor=system("faults"),
                label=f"{name} {place}",
                platform="webhook",
                endpoint_url=f"{url}/{name}-{place}",
                config={"secret": "a secret of the test's own"},
            )


def write(file_name: str, rate: float, orgs: Sequence[uuid.UUID]) -> None:
    """A line of the file is a call: its id, its organization, and when its commit was confirmed."""
    from audit.audit_connection import open_audit_connection
    from audit.call_record import CallRecord

    call = {"user_id": "user-1", "user_label": "Ana", "vendor": "acme", "tool": "acme_list", "source": "mcp"}
    call |= {"status": "success", "request_id": "r-1"}
    log, next_s = open_audit_connection(), time.monotonic()
    with open(file_name, "a", encoding="ascii", buffering=1) as noted:
        while True:
            records = [CallRecord(org_id=org_id, **call) for org_id in orgs]  # type: ignore[arg-type]
            log.commit(records)
            now = time.time()
            noted.write("".join(f"{record.id} {record.org_id} {now:.3f}\n" for record in records))
            next_s += 1 / rate
            time.sleep(max(0.0, next_s - time.monotonic()))


if __name__ == "__main__":
    django.setup()
    match sys.argv[1:]:
        case ["prepare", vendor_url]:
            sys.stdout.write(f"{prepare(vendor_url)}\n")
        case ["destinations", name, url, number, *orgs]:
            add_destinations(name, url, int(number), [uuid.UUID(each) for each in orgs])
        case ["write", file_name, rate, *orgs]:
            write(file_name, float(rate), [uuid.UUID(each) for each in orgs])
        case _:
            sys.exit(__doc__)

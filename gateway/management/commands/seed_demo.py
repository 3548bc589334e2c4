"""The demo organization of `make run`: owner, connected vendor, service client with fresh secrets. Contract: 2"""

from __future__ import annotations

import json
import socket
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from credentials.credential_scope import CredentialScope
from credentials.selectors import credential, credential_summaries, organization_vendors
from credentials.services.credentials import store_credential
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.lib import secrets
from gateway.supervisor.folder import write_private
from oauth_ext.models import Client
from oauth_ext.selectors import service_clients
from oauth_ext.services.agent_keys import mint_agent_key
from oauth_ext.services.service_clients import create_service_client, rotate_client_secret
from orgs.models import Identity, Membership, Organization, User
from orgs.roles import Role
from orgs.services.organizations import create_organization
from proxy.control_plane.check_credential import check_again
from proxy.control_plane.connect_vendor import load_tools

OWNER_EMAIL = "owner@demo.example"
ORGANIZATION_NAME = "Demo organization"
SERVICE_CLIENT_NAME = "Demo agent"
DEMO_VENDOR = "acme"
# Seconds.
CONNECT_TIMEOUT_S = 1.0
PAUSE_S = 0.1


class Command(BaseCommand):
    help = "Make the demo organization, or find it, and give its service client a new key and secret."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--ready-file", required=True, help="where the new secrets are written (mode 0600)")
        parser.add_argument("--wait", type=float, default=0.0, help="seconds in which the demo's vendors may start")

    def handle(self, *, ready_file: str, wait: float, **options: Any) -> None:
        if not settings.EMBEDDED:
            raise CommandError("The demo exists in the embedded default only.")
        with transaction.atomic():
            owner = _owner()
            organization = _organization(owner)
            _connect_vendors(owner, organization)
            client, client_secret = _service_client(owner, organization)
            minted = mint_agent_key(actor=owner, client=client)
        # The vendors are asked outside the transaction.
        _verify_vendors(owner, organization, wait)
        seed = {
            "org_id": str(organization.id),
            "owner_email": OWNER_EMAIL,
            "agent_key": minted.agent_key,
            "client_id": client.client_id,
            "client_secret": client_secret,
        }
        write_private(Path(ready_file), json.dumps(seed))


def _owner() -> User:
    issuer = settings.OIDC_OP_DISCOVERY_URL.removesuffix("/.well-known/openid-configuration")
    owner = User.objects.filter(email=OWNER_EMAIL).order_by("created_at").first()
    if owner is None:
        owner = User.objects.create_user(email=OWNER_EMAIL, display_name="Demo Owner")
    # The demo provider's port can change between starts, and with it the issuer.
    Identity.objects.get_or_create(issuer=issuer, sub=OWNER_EMAIL, defaults={"user": owner})
    return owner


def _organization(owner: User) -> Organization:
    membership = Membership.objects.filter(
        user=owner, role=Role.OWNER.value, organization__name=ORGANIZATION_NAME
    ).first()
    return membership.organization if membership else create_organization(actor=owner, name=ORGANIZATION_NAME)


def _connect_vendors(owner: User, organization: Organization) -> None:
    """Connect the demo vendor with a made-up key, and local vendors that need none."""
    connected = set(organization_vendors(organization))
    for vendor in registry.load().all():
        if vendor.slug in connected:
            continue
        if vendor.slug == DEMO_VENDOR:
            fields = {"apiKey": f"demo-{secrets.random_base62(24)}"}
        elif _is_of_demo(vendor):
            fields = {}
        else:
            continue
        store_credential(
            actor=owner, organization=organization, vendor=vendor, scope=CredentialScope.ORGANIZATION, fields=fields
        )


def _verify_vendors(owner: User, organization: Organization, wait_s: float) -> None:
    """Check credentials that no vendor has confirmed yet, and load the tools. A vendor that is away stays unverified,
    and the next start asks again.
    """
    ends_at = time.monotonic() + wait_s
    for row in credential_summaries(organization):
        vendor = registry.load().get(row.vendor)
        if vendor is None or row.validated_at or not _is_of_demo(vendor) or not _listens(vendor, ends_at):
            continue
        checked = check_again(actor=owner, organization=organization, credential=credential(organization, row.id))
        if checked.validated_at:
            load_tools(organization, vendor, checked)


def _is_of_demo(vendor: Vendor) -> bool:
    return vendor.slug == DEMO_VENDOR or (not vendor.fields and vendor.url.startswith("http://127.0.0.1"))


def _listens(vendor: Vendor, ends_at: float) -> bool:
    """Whether the vendor takes connections by then: it starts beside this command."""
    parts = urlsplit(vendor.url)
    while True:
        try:
            socket.create_connection((parts.hostname or "", parts.port or 80), timeout=CONNECT_TIMEOUT_S).close()
        except OSError:
            if time.monotonic() >= ends_at:
                return False
            time.sleep(PAUSE_S)
        else:
            return True


def _service_client(owner: User, organization: Organization) -> tuple[Client, str]:
    # Secrets are stored as hashes only, so each start rotates them.
    client = service_clients(organization).filter(name=SERVICE_CLIENT_NAME).first()
    if client is not None and not client.is_expired():
        return client, rotate_client_secret(actor=owner, client=client).client_secret
    created = create_service_client(actor=owner, organization=organization, name=SERVICE_CLIENT_NAME)
    return created.client, created.client_secret

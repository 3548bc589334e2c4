"""The demo organization of `make run`: owner, connected vendor, service client with fresh secrets. Contract: 2"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from credentials.credential_scope import CredentialScope
from credentials.selectors import organization_vendors
from credentials.services.credentials import store_credential
from gateway.catalog import registry
from gateway.lib import secrets
from gateway.supervisor.folder import write_private
from oauth_ext.models import Client
from oauth_ext.selectors import service_clients
from oauth_ext.services.agent_keys import mint_agent_key
from oauth_ext.services.service_clients import create_service_client, rotate_client_secret
from orgs.models import Identity, Membership, Organization, User
from orgs.roles import Role
from orgs.services.organizations import create_organization

OWNER_EMAIL = "owner@demo.example"
ORGANIZATION_NAME = "Demo organization"
SERVICE_CLIENT_NAME = "Demo agent"
DEMO_VENDOR = "acme"


class Command(BaseCommand):
    help = "Make the demo organization, or find it, and give its service client a new key and secret."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--ready-file", required=True, help="where the new secrets are written (mode 0600)")

    def handle(self, *, ready_file: str, **options: Any) -> None:
        if not settings.EMBEDDED:
            raise CommandError("The demo exists in the embedded default only.")
        with transaction.atomic():
            owner = _owner()
            organization = _organization(owner)
            _connect_vendors(owner, organization)
            client, client_secret = _service_client(owner, organization)
            minted = mint_agent_key(actor=owner, client=client)
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
        elif not vendor.fields and vendor.url.startswith("http://127.0.0.1"):
            fields = {}
        else:
            continue
        store_credential(
            actor=owner, organization=organization, vendor=vendor, scope=CredentialScope.ORGANIZATION, fields=fields
        )


def _service_client(owner: User, organization: Organization) -> tuple[Client, str]:
    # Secrets are stored as hashes only, so each start rotates them.
    client = service_clients(organization).filter(name=SERVICE_CLIENT_NAME).first()
    if client is not None and not client.is_expired():
        return client, rotate_client_secret(actor=owner, client=client).client_secret
    created = create_service_client(actor=owner, organization=organization, name=SERVICE_CLIENT_NAME)
    return created.client, created.client_secret

"""The gateway's client at a vendor's authorization server: by hand, by metadata document, or registered by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction

from credentials.connection_sealing import open_client, seal_client
from credentials.models import VendorConnection, VendorOAuthClient
from credentials.vendor_asking import ASK, catalog_client, client_document_url, redirect_uri
from credentials.vendor_oauth.answers import AuthorizationServer, VendorOAuthFault
from credentials.vendor_oauth.requests import OAuthClient, preferred_method, register
from gateway.catalog.vendor import OAuthSettings, Vendor
from gateway.lib import clock
from gateway.lib.sentences import sentence
from orgs.locking import lock_organization
from orgs.models import Organization

# A secret that ends sooner than this is replaced before a sign-in.
RENEW_BEFORE = timedelta(hours=1)


def client_for(organization: Organization, vendor: Vendor, server: AuthorizationServer) -> OAuthClient:
    """May ask the server, so no transaction may be open. Raises: VendorOAuthFault; UnusableCredential."""
    oauth = vendor.oauth
    if oauth is not None and oauth.is_registered_by_hand:
        client = catalog_client(oauth, server.issuer)
        return replace(client, auth_method=preferred_method(server, has_secret=bool(client.secret)))
    if server.takes_metadata_documents and client_document_url():
        return OAuthClient(client_document_url())
    stored = _stored(organization, vendor, server.issuer)
    if stored is not None:
        return stored
    made = register(server, redirect_uri=redirect_uri(), client_uri=settings.BASE_URL, ask=ASK)
    return _keep(organization, vendor, server.issuer, made)


def client_of(connection: VendorConnection, vendor: Vendor | None) -> OAuthClient:
    """The client that the connection was made with. Raises: VendorOAuthFault; UnusableCredential."""
    return known_client(
        connection.organization_id,
        connection.vendor,
        vendor.oauth if vendor is not None else None,
        issuer=connection.issuer,
        client_id=connection.client_id,
        auth_method=connection.auth_method,
    )


def known_client(
    organization_id: UUID, vendor: str, oauth: OAuthSettings | None, *, issuer: str, client_id: str, auth_method: str
) -> OAuthClient:
    """The client with this id at this issuer, and no other. Raises: VendorOAuthFault; UnusableCredential."""
    if oauth is not None and oauth.client_id == client_id:
        return catalog_client(oauth, issuer, auth_method)
    if client_id == client_document_url():
        return OAuthClient(client_id)
    rows = VendorOAuthClient.objects.filter(organization_id=organization_id, vendor=vendor)
    row = rows.filter(issuer=issuer, client_id=client_id).first()
    if row is None:
        raise VendorOAuthFault(sentence("The client of this connection is no longer known."))
    return open_client(row)


def _stored(organization: Organization, vendor: Vendor, issuer: str) -> OAuthClient | None:
    row = VendorOAuthClient.objects.filter(organization=organization, vendor=vendor.slug, issuer=issuer).first()
    if row is None or (row.secret_expires_at is not None and row.secret_expires_at <= clock.now() + RENEW_BEFORE):
        return None
    return open_client(row)


@transaction.atomic
def _keep(organization: Organization, vendor: Vendor, issuer: str, client: OAuthClient) -> OAuthClient:
    """Raises: NotFound for a deleted organization."""
    lock_organization(organization)
    known = _stored(organization, vendor, issuer)
    if known is not None:  # two sign-ins began at the same time: the first registration counts
        return known
    rows = VendorOAuthClient.objects.filter(organization=organization, vendor=vendor.slug, issuer=issuer)
    row = rows.first() or VendorOAuthClient(organization=organization, vendor=vendor.slug, issuer=issuer)
    row.client_id, row.auth_method, row.registered_at = client.client_id, client.auth_method, clock.now()
    ends_s = client.secret_expires_at_s
    row.secret_expires_at = None if ends_s is None else datetime.fromtimestamp(ends_s, UTC)
    seal_client(row, client)
    row.save()
    return client

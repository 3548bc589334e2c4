"""Operations on connections to vendors that people sign in to, for tests/e2e/operations.py."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from credentials.connection_sealing import open_access, open_client, open_refresh, open_sign_in
from credentials.models import VendorConnection, VendorOAuthClient, VendorSignIn
from gateway.coordination import epochs
from gateway.lib import clock

# Longer than a token counts as fresh.
OLD = timedelta(hours=1)


def make_connections_due(org_id: str) -> None:
    """The tokens of the organization's connections have ended, as far as the gateway knows."""
    ended = clock.now() - timedelta(seconds=1)
    with transaction.atomic():
        VendorConnection.objects.filter(organization_id=org_id).update(
            refresh_at=ended, expires_at=ended, connected_at=ended - OLD, refreshed_at=None
        )
        epochs.bump_on_commit(epochs.organization(UUID(org_id)))


def end_leases(org_id: str) -> None:
    """The time of every process that renews is over."""
    VendorConnection.objects.filter(organization_id=org_id).update(lease_until=clock.now())


def connection_facts(org_id: str) -> list[dict[str, Any]]:
    """The states of the rows, the organization's own ones first; `is_leased`: a process renews, or died doing so."""
    rows = sorted(
        VendorConnection.objects.filter(organization_id=org_id), key=lambda row: row.membership_id is not None
    )
    return [
        {"state": row.state, "problem": row.problem, "revision": row.revision, "is_leased": row.lease_id is not None}
        for row in rows
    ]


def connection_secrets(org_id: str) -> dict[str, str]:
    """All that is sealed in the organization's connections and clients, by a name of each."""
    found: dict[str, str] = {}
    for row in VendorConnection.objects.filter(organization_id=org_id):
        found[f"access token {row.revision} of {row.id}"] = open_access(row)
        found[f"refresh token {row.revision} of {row.id}"] = open_refresh(row)
    for client in VendorOAuthClient.objects.filter(organization_id=org_id):
        found[f"secret of client {client.id}"] = open_client(client).secret
    return found


def sign_in_verifiers(org_id: str) -> list[str]:
    """The code verifiers of the sign-ins that were begun."""
    return [open_sign_in(row)["verifier"] for row in VendorSignIn.objects.filter(organization_id=org_id)]


OPERATIONS = (make_connections_due, end_leases, connection_facts, connection_secrets, sign_in_verifiers)

"""Allowlists of one service client by vendor, and its mode. Spec: D165"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.catalog.registry import known_vendor
from gateway.lib import clock
from gateway.lib.errors import Invalid
from gateway.lib.rows import required_row
from gateway.lib.sentences import sentence
from oauth_ext.models import Client, ServiceClientAllowlist
from oauth_ext.models.client import ToolMode
from oauth_ext.services.token_families import bump_clients
from orgs.errors import AllowlistChanged
from orgs.locking import lock_for_change
from orgs.models import Organization, User
from orgs.roles import Role
from orgs.services.tool_access import checked_tools
from orgs.services.tool_approval import Review, approve_tools


@transaction.atomic
def set_client_allowlist(
    *,
    actor: User,
    organization: Organization,
    client: Client,
    vendor: str,
    tools: Sequence[str],
    seen_version: str | None = None,
    review: Review | None = None,
) -> ServiceClientAllowlist:
    """As `orgs.services.tool_access.set_allowlist`, for a service client; approves tools only with `review`.

    Raises: NotFound for an unknown vendor or a deleted client; Invalid; Forbidden; AllowlistChanged. Spec: D76, D165
    """
    found = _begin(organization, actor, client)
    known_vendor(vendor)
    names = checked_tools(tools)
    _require_unchanged(found, vendor, seen_version)
    row, _ = ServiceClientAllowlist.objects.update_or_create(
        client=found, vendor=vendor, defaults={"tools": names, "updated_by": actor, "updated_at": clock.now()}
    )
    if review is not None:
        approve_tools(organization=organization, vendor=vendor, review=review)
    _record(EventType.TOOL_ACCESS_UPDATED, actor, organization, found, vendor=vendor, tools=names)
    return row


@transaction.atomic
def clear_client_allowlist(
    *, actor: User, organization: Organization, client: Client, vendor: str, seen_version: str | None = None
) -> None:
    """Idempotent. Raises: NotFound for an unknown vendor or a deleted client; Forbidden; AllowlistChanged. Spec: D9"""
    found = _begin(organization, actor, client)
    _require_unchanged(found, vendor, seen_version)
    deleted, _ = ServiceClientAllowlist.objects.filter(client=found, vendor=vendor).delete()
    if not deleted:
        known_vendor(vendor)
        return
    _record(EventType.TOOL_ACCESS_CLEARED, actor, organization, found, vendor=vendor)


@transaction.atomic
def set_tool_mode(*, actor: User, organization: Organization, client: Client, mode: str) -> Client:
    """Raises: Invalid; NotFound for a deleted client; Forbidden."""
    found = _begin(organization, actor, client)
    if mode not in ToolMode.values:
        raise Invalid(fields={"mode": [sentence("Must be %(values)s.", values=" or ".join(ToolMode.values))]})
    if found.tool_mode != mode:
        was, found.tool_mode = found.tool_mode, mode
        found.save(update_fields=["tool_mode"])
        _record(EventType.TOOL_ACCESS_UPDATED, actor, organization, found, mode=mode, was=was)
    return found


def _begin(organization: Organization, actor: User, client: Client) -> Client:
    # The role that changes the lists of roles.
    lock_for_change(organization, actor=actor, role=Role.OWNER)
    return required_row(Client.objects.filter(pk=client.pk, organization=organization))


def _require_unchanged(client: Client, vendor: str, seen_version: str | None) -> None:
    if seen_version is None:
        return
    row = ServiceClientAllowlist.objects.select_related("updated_by").filter(client=client, vendor=vendor).first()
    if (row.version if row else "") != seen_version:
        raise AllowlistChanged(row.updated_by.name if row and row.updated_by else "")


def _record(event: EventType, actor: User, organization: Organization, client: Client, **facts: object) -> None:
    metadata = {"client_id": client.client_id, **facts}
    record_admin(event, org_id=organization.id, actor=actor.as_actor(), target=client.as_target(), metadata=metadata)
    bump_clients(client)

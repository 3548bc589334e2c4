"""Tool allowlists by vendor and role: set and clear."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction

from audit.actor import Target
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.catalog.registry import known_vendor
from gateway.catalog.vendor import TOOL_NAME_MAX_CHARACTERS, is_tool_name
from gateway.coordination import epochs
from gateway.lib import clock
from gateway.lib.errors import Invalid
from gateway.lib.sentences import sentence
from orgs.errors import AllowlistChanged
from orgs.locking import lock_for_change
from orgs.models import Organization, ToolAllowlist, User
from orgs.roles import Role, role_named
from orgs.services.tool_approval import Review, approve_tools


@transaction.atomic
def set_allowlist(
    *,
    actor: User,
    organization: Organization,
    vendor: str,
    role: str,
    tools: Sequence[str],
    seen_version: str | None = None,
    review: Review | None = None,
) -> ToolAllowlist:
    """Allow `role` exactly `tools` of the vendor; an empty list allows none. Spec: §4.9 · D76, D77

    `seen_version`: version of the list that the actor edited, "" if there was none, None to skip the check. Approves
    the vendor's tools too, as last seen; with `review` only the reviewed ones.
    Raises: NotFound for an unknown vendor or role; Invalid; Forbidden; AllowlistChanged.
    """
    known_role = role_named(role)
    lock_for_change(organization, actor=actor, role=Role.OWNER)
    known_vendor(vendor)
    # The vendor is not asked whether it has these tools: it may be down. Spec: D76
    names = checked_tools(tools)
    _require_unchanged(organization, vendor, known_role, seen_version)
    row, _ = ToolAllowlist.objects.update_or_create(
        organization=organization,
        vendor=vendor,
        role=known_role.value,
        defaults={"tools": names, "updated_by": actor, "updated_at": clock.now()},
    )
    approve_tools(organization=organization, vendor=vendor, review=review)
    _record(EventType.TOOL_ACCESS_UPDATED, actor, organization, vendor, known_role, tools=names)
    return row


@transaction.atomic
def clear_allowlist(
    *, actor: User, organization: Organization, vendor: str, role: str, seen_version: str | None = None
) -> None:
    """Idempotent. Raises: NotFound for an unknown vendor or role; Forbidden; AllowlistChanged. Spec: §4.9 · D9"""
    known_role = role_named(role)
    lock_for_change(organization, actor=actor, role=Role.OWNER)
    _require_unchanged(organization, vendor, known_role, seen_version)
    deleted, _ = ToolAllowlist.objects.filter(organization=organization, vendor=vendor, role=known_role.value).delete()
    if not deleted:
        known_vendor(vendor)
        return
    _record(EventType.TOOL_ACCESS_CLEARED, actor, organization, vendor, known_role)


def _require_unchanged(organization: Organization, vendor: str, role: Role, seen_version: str | None) -> None:
    if seen_version is None:
        return
    rows = ToolAllowlist.objects.filter(organization=organization, vendor=vendor, role=role.value)
    row = rows.select_related("updated_by").first()
    if (row.version if row else "") != seen_version:
        raise AllowlistChanged(row.updated_by.name if row and row.updated_by else "")


def checked_tools(tools: Sequence[str]) -> list[str]:
    """The tools of a list, each once. Raises: Invalid. Spec: D76"""
    if len(tools) > settings.ALLOWLIST_TOOLS:
        raise Invalid(
            fields={"tools": [sentence("At most %(allowlist_tools)s tools.", allowlist_tools=settings.ALLOWLIST_TOOLS)]}
        )
    if not all(is_tool_name(name) for name in tools):
        raise Invalid(
            fields={
                "tools": [
                    sentence(
                        "A tool name must have 1 to %(tool_name_max_characters)s printable characters.",
                        tool_name_max_characters=TOOL_NAME_MAX_CHARACTERS,
                    )
                ]
            }
        )
    # Removes repeated names and keeps the order.
    return list(dict.fromkeys(tools))


def _record(
    event: EventType, actor: User, organization: Organization, vendor: str, role: Role, **facts: object
) -> None:
    record_admin(
        event,
        org_id=organization.id,
        actor=actor.as_actor(),
        target=Target(id=f"{vendor}:{role.value}", label=f"{vendor} for the role {role.value}"),
        metadata={"vendor": vendor, "role": role.value, **facts},
    )
    epochs.bump_on_commit(epochs.organization(organization.id))

"""Lists of a vendor's resources and prompts by role: set and clear. docs/decisions/0115"""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from audit.actor import Target
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.catalog.registry import known_vendor
from gateway.catalog.vendor import TOOL_NAME_MAX_CHARACTERS, is_tool_name
from gateway.coordination import epochs
from gateway.lib import clock, uri_templates
from gateway.lib.errors import Invalid, NotFound
from gateway.lib.sentences import sentence
from orgs.allowed_items import ItemType
from orgs.errors import AllowlistChanged
from orgs.locking import lock_for_change
from orgs.models import ItemAllowlist, Organization, User
from orgs.roles import Role, role_named


@transaction.atomic
def set_item_list(
    *,
    actor: User,
    organization: Organization,
    vendor: str,
    role: str,
    kind: str,
    entries: Sequence[str],
    seen_version: str | None = None,
) -> ItemAllowlist:
    """Allow `role` exactly these resources or prompts of the vendor; an empty list allows none.

    `seen_version`: as that of `tool_access.set_allowlist`. Raises: NotFound for an unknown vendor, role or type;
    Invalid; Forbidden; AllowlistChanged. docs/decisions/0115
    """
    known_role, known_type = role_named(role), item_type_named(kind)
    lock_for_change(organization, actor=actor, role=Role.OWNER)
    known_vendor(vendor)
    names = checked_entries(known_type, entries)
    _require_unchanged(organization, vendor, known_role, known_type, seen_version)
    row, _ = ItemAllowlist.objects.update_or_create(
        organization=organization,
        vendor=vendor,
        role=known_role.value,
        kind=known_type.value,
        defaults={"entries": names, "updated_by": actor, "updated_at": clock.now()},
    )
    _record(EventType.ITEM_ACCESS_UPDATED, actor, organization, vendor, known_role, known_type, entries=names)
    return row


@transaction.atomic
def clear_item_list(
    *, actor: User, organization: Organization, vendor: str, role: str, kind: str, seen_version: str | None = None
) -> None:
    """Idempotent. Raises: NotFound for an unknown vendor, role or type; Forbidden; AllowlistChanged. Spec: D9"""
    known_role, known_type = role_named(role), item_type_named(kind)
    lock_for_change(organization, actor=actor, role=Role.OWNER)
    _require_unchanged(organization, vendor, known_role, known_type, seen_version)
    deleted, _ = _rows(organization, vendor, known_role, known_type).delete()
    if not deleted:
        known_vendor(vendor)
        return
    _record(EventType.ITEM_ACCESS_CLEARED, actor, organization, vendor, known_role, known_type)


def item_type_named(name: str) -> ItemType:
    """Raises: NotFound."""
    try:
        return ItemType(name)
    except ValueError:
        raise NotFound from None


def checked_entries(kind: ItemType, entries: Sequence[str]) -> list[str]:
    """The entries of a list, each once. The vendor is not asked whether it has them: it may be down. Raises: Invalid"""
    if len(entries) > settings.ALLOWLIST_ITEMS:
        raise _invalid(sentence("At most %(allowlist_items)s entries.", allowlist_items=settings.ALLOWLIST_ITEMS))
    most = settings.ALLOWLIST_ITEM_CHARACTERS
    if sum(map(len, entries)) > most:
        raise _invalid(sentence("At most %(most_characters)s characters in all.", most_characters=most))
    fault = _fault_in_addresses(entries) if kind is ItemType.RESOURCES else _fault_in_names(entries)
    if fault:
        raise _invalid(fault)
    return list(dict.fromkeys(entries))


def _fault_in_names(names: Sequence[str]) -> str:
    if all(map(is_tool_name, names)):
        return ""
    return sentence(
        "A prompt name must have 1 to %(most)s printable characters.",
        most=TOOL_NAME_MAX_CHARACTERS,
    )


def _fault_in_addresses(addresses: Sequence[str]) -> str:
    most = uri_templates.MAX_ADDRESS_CHARACTERS
    if not all(0 < len(each) <= most and each.isprintable() for each in addresses):
        return sentence("An address must have 1 to %(most)s printable characters.", most=most)
    templates = set(filter(uri_templates.is_template, addresses))
    if len(templates) > settings.ALLOWLIST_TEMPLATES:
        return sentence("At most %(allowlist_templates)s templates.", allowlist_templates=settings.ALLOWLIST_TEMPLATES)
    # One of which no address is made allows nothing, which its author cannot mean.
    wrong = next((each for each in sorted(templates) if uri_templates.fault_in(each)), None)
    if wrong is None:
        return ""
    return sentence(
        "A template must begin with a scheme and have at most %(most)s characters: %(entry)s",
        most=uri_templates.MAX_TEMPLATE_CHARACTERS,
        entry=wrong[:80],
    )


def _invalid(fault: str) -> Invalid:
    return Invalid(fields={"entries": [fault]})


def _rows(organization: Organization, vendor: str, role: Role, kind: ItemType) -> QuerySet[ItemAllowlist]:
    return ItemAllowlist.objects.filter(organization=organization, vendor=vendor, role=role.value, kind=kind.value)


def _require_unchanged(
    organization: Organization, vendor: str, role: Role, kind: ItemType, seen_version: str | None
) -> None:
    if seen_version is None:
        return
    row = _rows(organization, vendor, role, kind).select_related("updated_by").first()
    if (row.version if row else "") != seen_version:
        raise AllowlistChanged(row.updated_by.name if row and row.updated_by else "")


def _record(
    event: EventType,
    actor: User,
    organization: Organization,
    vendor: str,
    role: Role,
    kind: ItemType,
    **facts: object,
) -> None:
    record_admin(
        event,
        org_id=organization.id,
        actor=actor.as_actor(),
        # The target of the list of tools: the changes of both are one history.
        target=Target(id=f"{vendor}:{role.value}", label=f"{vendor} for the role {role.value}"),
        metadata={"vendor": vendor, "role": role.value, "kind": kind.value, **facts},
    )
    epochs.bump_on_commit(epochs.organization(organization.id))

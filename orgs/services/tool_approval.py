"""Approval of a vendor's tools as they were last seen."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F

from audit.actor import Target
from audit.admin_log import record_admin
from audit.event_types import EventType
from orgs.errors import ToolsChanged
from orgs.locking import lock_for_change
from orgs.models import KnownTool, Organization, User
from orgs.roles import Role
from orgs.services.tool_change_log import NAMED_IN_LOG
from orgs.services.tool_comparison import NOT_OFFERED


@dataclass(frozen=True, slots=True)
class Review:
    """The reviewer's view: `fingerprint_of` the vendor's tools, and the ids of the rows on the page."""

    fingerprint: str
    shown: frozenset[str]


def approve_tools(*, organization: Organization, vendor: str, review: Review | None = None) -> list[str] | None:
    """Approve the waiting tools and return their names. The caller holds the organization's lock.

    With a `review`: only the rows in it, and None if the vendor's tools have changed since.
    """
    rows = KnownTool.objects.filter(organization=organization, vendor=vendor)
    known = list(rows.defer("seen_definition", "approved_definition"))
    if review and fingerprint_of(known) != review.fingerprint:
        return None
    waiting = [row for row in known if not row.is_approved and (not review or str(row.pk) in review.shown)]
    if review:
        rows = rows.filter(pk__in=[row.pk for row in waiting])
    rows.update(approved_sha256=F("seen_sha256"), approved_definition="")
    # A removed tool is approved by deleting its row.
    rows.filter(seen_sha256=NOT_OFFERED).delete()
    return sorted({row.tool for row in waiting})


@transaction.atomic
def approve_shown_tools(*, actor: User, organization: Organization, vendor: str, review: Review) -> int:
    """Return the number of tools. Raises: ToolsChanged; NotFound, Forbidden. Spec: D78 · ux.md 7"""
    lock_for_change(organization, actor=actor, role=Role.OWNER)
    approved = approve_tools(organization=organization, vendor=vendor, review=review)
    if approved is None:
        raise ToolsChanged
    if approved:
        record_admin(
            EventType.VENDOR_TOOLS_APPROVED,
            org_id=organization.id,
            actor=actor.as_actor(),
            target=Target(id=vendor, label=vendor),
            metadata={"vendor": vendor, "tools": approved[:NAMED_IN_LOG], "count": len(approved)},
        )
    return len(approved)


def fingerprint_of(tools: Iterable[KnownTool]) -> str:
    """Changes with every change of one of the vendor's tools."""
    ordered = sorted(tools, key=lambda row: (row.credential_scope, row.tool))
    seen = b"".join(
        f"{row.credential_scope}\0{row.tool}\0".encode() + bytes(row.seen_sha256) + b"\n" for row in ordered
    )
    # The first 128 bits, as hex.
    return hashlib.sha256(seen).hexdigest()[:32]

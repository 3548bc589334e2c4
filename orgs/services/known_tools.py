"""Noticing that a vendor changed its tools. Setting an allowlist of the vendor approves what is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F

from audit.actor import Actor, Target, system
from audit.event_types import EventType
from audit.record import record_admin
from gateway.lib import clock
from orgs.locking import lock_organization
from orgs.models import KnownTool, Organization

NAMED_IN_LOG = 20
DISCOVERY = system("tool discovery")
_NAME_CHARACTERS = 255
_NOT_OFFERED = b""  # what was seen last of a tool that is gone


@dataclass(frozen=True, slots=True)
class _Changes:
    """Tools by the vendor's own names."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def note_tools(
    *,
    organization: Organization,
    vendor: str,
    digests: Mapping[str, bytes],
    is_whole_list: bool = False,
    actor: Actor = DISCOVERY,
) -> frozenset[str]:
    """The tools that differ from when they were last approved, new ones included; the first look approves all.

    `digests`: SHA-256 of each definition by the vendor's own tool name. What changed since the last look is recorded
    once, however many look; `is_whole_list`: a tool that is missing counts as removed.
    Raises: NotFound when the organization is gone.   Spec: D78
    """
    offered = {tool[:_NAME_CHARACTERS]: digest for tool, digest in digests.items()}
    known = _known(organization, vendor)
    if _changes(known, offered, is_whole_list=is_whole_list):
        known = _note_changes(organization, vendor, offered, is_whole_list, actor)
    approved = {tool: bytes(row.approved_sha256) for tool, row in known.items()}
    return frozenset(tool for tool, digest in digests.items() if approved[tool[:_NAME_CHARACTERS]] != digest)


@transaction.atomic
def _note_changes(
    organization: Organization, vendor: str, digests: Mapping[str, bytes], is_whole_list: bool, actor: Actor
) -> dict[str, KnownTool]:
    lock_organization(organization)
    known = _known(organization, vendor)  # again: whoever held the lock may have noted the same
    is_first_look = not known
    changes = _changes(known, digests, is_whole_list=is_whole_list)
    fresh, moved = [], []
    for tool in (*changes.added, *changes.changed, *changes.removed):
        digest = digests.get(tool, _NOT_OFFERED)
        row = known.get(tool)
        if row is None:
            approved = digest if is_first_look else b""
            known[tool] = KnownTool(
                organization=organization, vendor=vendor, tool=tool, seen_sha256=digest, approved_sha256=approved
            )
            fresh.append(known[tool])
        else:
            row.seen_sha256, row.seen_at = digest, clock.now()
            moved.append(row)
    KnownTool.objects.bulk_create(fresh)
    KnownTool.objects.bulk_update(moved, ["seen_sha256", "seen_at"])
    if changes and not is_first_look:
        _record(organization, vendor, changes, actor)
    return known


def _known(organization: Organization, vendor: str) -> dict[str, KnownTool]:
    return {row.tool: row for row in KnownTool.objects.filter(organization=organization, vendor=vendor)}


def _changes(known: Mapping[str, KnownTool], digests: Mapping[str, bytes], *, is_whole_list: bool) -> _Changes:
    seen = {tool: bytes(row.seen_sha256) for tool, row in known.items()}
    offered = {tool for tool, digest in seen.items() if digest != _NOT_OFFERED}
    return _Changes(
        added=tuple(sorted(digests.keys() - offered)),
        changed=tuple(sorted(tool for tool in digests.keys() & offered if seen[tool] != digests[tool])),
        removed=tuple(sorted(offered - digests.keys())) if is_whole_list else (),
    )


def approve_tools(*, organization: Organization, vendor: str) -> None:
    """The vendor's tools are approved as they were last seen. For the transaction that sets an allowlist."""
    KnownTool.objects.filter(organization=organization, vendor=vendor).update(approved_sha256=F("seen_sha256"))


def _record(organization: Organization, vendor: str, changes: _Changes, actor: Actor) -> None:
    tools = sorted((*changes.added, *changes.changed, *changes.removed))
    record_admin(
        EventType.VENDOR_TOOLS_CHANGED,
        org_id=organization.id,
        actor=actor,
        target=Target(id=vendor, label=vendor),
        metadata={
            "vendor": vendor,
            "tools": tools[:NAMED_IN_LOG],
            "count": len(tools),
            "added": changes.added[:NAMED_IN_LOG],
            "changed": changes.changed[:NAMED_IN_LOG],
            "removed": changes.removed[:NAMED_IN_LOG],
        },
    )

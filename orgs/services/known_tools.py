"""Noticing that a vendor changed its tools, and approving them as they are. Setting an allowlist approves, too."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F

from audit.actor import Actor, Target, system
from audit.event_types import EventType
from audit.record import record_admin
from gateway.lib import clock
from orgs.errors import ToolsChanged
from orgs.locking import lock_for_change, lock_organization
from orgs.models import KnownTool, Organization, ToolLook, User
from orgs.roles import Role

NAMED_IN_LOG = 20
DISCOVERY = system("tool discovery")
KEPT_BYTES = 32 * 1024  # of one definition; a larger one is compared by its checksum and not shown
_NOT_OFFERED = b""  # what was seen last of a tool that is gone


@dataclass(frozen=True, slots=True)
class _Seen:
    """One tool as the vendor offers it."""

    sha256: bytes
    definition: str

    @classmethod
    def of(cls, definition: bytes) -> _Seen:
        """Of canonical JSON."""
        kept = definition.decode() if len(definition) <= KEPT_BYTES else ""
        return cls(hashlib.sha256(definition).digest(), kept)


_GONE = _Seen(_NOT_OFFERED, "")


@dataclass(frozen=True, slots=True)
class Review:
    """What somebody looked at: `fingerprint_of` the vendor's tools, and those of them whose change was shown."""

    fingerprint: str
    tools: frozenset[str]


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
    definitions: Mapping[str, bytes],
    is_whole_list: bool = False,
    actor: Actor = DISCOVERY,
) -> frozenset[str]:
    """The tools that differ from when they were last approved, new ones included; the first look approves all.

    `definitions`: canonical JSON by the vendor's own tool name, which is_tool_name lets pass. What changed since the
    last look is recorded once, however many look; `is_whole_list`: a tool that is missing counts as removed.
    Raises: NotFound when the organization is gone.   Spec: D78
    """
    offered = {tool: _Seen.of(definition) for tool, definition in definitions.items()}
    known = _known(organization, vendor)
    if _changes(known, offered, is_whole_list=is_whole_list) or _without_text(known, offered):
        known = _note_changes(organization, vendor, offered, is_whole_list, actor)
    _note_look(organization, vendor)
    approved = {tool: bytes(row.approved_sha256) for tool, row in known.items()}
    return frozenset(tool for tool, seen in offered.items() if approved[tool] != seen.sha256)


@transaction.atomic
def _note_changes(
    organization: Organization, vendor: str, offered: Mapping[str, _Seen], is_whole_list: bool, actor: Actor
) -> dict[str, KnownTool]:
    lock_organization(organization)
    known = _known(organization, vendor)  # again: whoever held the lock may have noted the same
    is_first_look = not known
    changes = _changes(known, offered, is_whole_list=is_whole_list)
    fresh, moved = [], []
    for tool in (*changes.added, *changes.changed, *changes.removed):
        seen = offered.get(tool, _GONE)
        row = known.get(tool)
        if row is None:
            approved = seen if is_first_look else _GONE
            known[tool] = KnownTool(
                organization=organization,
                vendor=vendor,
                tool=tool,
                seen_sha256=seen.sha256,
                seen_definition=seen.definition,
                approved_sha256=approved.sha256,
                approved_definition=approved.definition,
            )
            fresh.append(known[tool])
        else:
            row.seen_sha256, row.seen_definition, row.seen_at = seen.sha256, seen.definition, clock.now()
            moved.append(row)
    KnownTool.objects.bulk_create(fresh)
    KnownTool.objects.bulk_update(moved, ["seen_sha256", "seen_definition", "seen_at"])
    _fill_in(known, offered)
    if changes and not is_first_look:
        _record(organization, vendor, changes, actor)
    return known


@transaction.atomic
def _note_look(organization: Organization, vendor: str) -> None:
    lock_organization(organization)
    ToolLook.objects.update_or_create(organization=organization, vendor=vendor, defaults={"looked_at": clock.now()})


def _without_text(known: Mapping[str, KnownTool], offered: Mapping[str, _Seen]) -> list[KnownTool]:
    """Rows whose text was not kept when they were seen, and is there now."""
    return [
        row
        for tool, row in known.items()
        if not row.seen_definition
        and (seen := offered.get(tool, _GONE)).definition
        and bytes(row.seen_sha256) == seen.sha256
    ]


def _fill_in(known: Mapping[str, KnownTool], offered: Mapping[str, _Seen]) -> None:
    rows = _without_text(known, offered)
    for row in rows:
        row.seen_definition = offered[row.tool].definition
        if row.is_approved:
            row.approved_definition = row.seen_definition
    KnownTool.objects.bulk_update(rows, ["seen_definition", "approved_definition"])


def _known(organization: Organization, vendor: str) -> dict[str, KnownTool]:
    return {row.tool: row for row in KnownTool.objects.filter(organization=organization, vendor=vendor)}


def _changes(known: Mapping[str, KnownTool], offered: Mapping[str, _Seen], *, is_whole_list: bool) -> _Changes:
    seen = {tool: bytes(row.seen_sha256) for tool, row in known.items()}
    before = {tool for tool, sha256 in seen.items() if sha256 != _NOT_OFFERED}
    return _Changes(
        added=tuple(sorted(offered.keys() - before)),
        changed=tuple(sorted(tool for tool in offered.keys() & before if seen[tool] != offered[tool].sha256)),
        removed=tuple(sorted(before - offered.keys())) if is_whole_list else (),
    )


def approve_tools(*, organization: Organization, vendor: str, review: Review | None = None) -> list[str] | None:
    """The tools that waited are approved as they were last seen; their names. For the transaction with the lock.

    With a `review` only those that were shown are, and none where the vendor changed its tools since: then it is None.
    """
    known = _known(organization, vendor)
    if review and fingerprint_of(known.values()) != review.fingerprint:
        return None
    waiting = [row for row in known.values() if not row.is_approved and (not review or row.tool in review.tools)]
    rows = KnownTool.objects.filter(organization=organization, vendor=vendor)
    if review:
        rows = rows.filter(pk__in=[row.pk for row in waiting])
    rows.update(approved_sha256=F("seen_sha256"), approved_definition=F("seen_definition"))
    return sorted(row.tool for row in waiting)


@transaction.atomic
def approve_shown_tools(*, actor: User, organization: Organization, vendor: str, review: Review) -> int:
    """Somebody looked at what changed and agrees: how many tools that were. No list is changed.

    Raises: ToolsChanged when the vendor changed them again since; NotFound, Forbidden.   Spec: D78 · ux.md 7
    """
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
    """A short text that is another one as soon as one of the vendor's tools is."""
    ordered = sorted(tools, key=lambda row: row.tool)
    seen = b"".join(row.tool.encode() + b"\0" + bytes(row.seen_sha256) + b"\n" for row in ordered)
    return hashlib.sha256(seen).hexdigest()[:32]


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

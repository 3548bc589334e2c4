"""Detection of changes in a vendor's tools."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, F, Q, QuerySet

from audit.actor import Actor, system
from gateway.lib import clock
from gateway.lib.sentences import sentence
from orgs.locking import lock_organization
from orgs.models import KnownTool, Organization, ToolSnapshot
from orgs.services.tool_change_log import record_changes
from orgs.services.tool_comparison import (
    NOT_OFFERED,
    Comparison,
    KnownFingerprints,
    KnownLists,
    KnownTools,
    OfferedTool,
    compare,
)

# The actor in the admin log if no person asked for the list.
DISCOVERY = system(sentence("tool discovery"))
GENERAL_LIST = ""
# Rows of one vendor in one organization. A list has at most 2,000 tools, and all of them may be renamed once.
KEPT_TOOLS = 4_000
# Rows of all further lists together.
KEPT_TOOLS_OF_FURTHER_LISTS = 2_000
T = TypeVar("T")
# Bounds the parameters of one SQL statement.
_NAMES_IN_A_STATEMENT = 500
_SEEN_COLUMNS = ["seen_sha256", "seen_definition", "seen_at"]


def record_tools(
    *,
    organization: Organization,
    vendor: str,
    definitions: Mapping[str, bytes],
    credential_scope: str = GENERAL_LIST,
    current_scopes: Collection[str] = (GENERAL_LIST,),
    actor: Actor = DISCOVERY,
) -> frozenset[str]:
    """Compare a list with the last one and store it; return the tools that differ from the approved ones. Spec: D78

    `definitions`: one whole list, canonical JSON by tool name (valid by is_tool_name). `credential_scope`: the list's
    owner. Lists of scopes outside `current_scopes` are deleted. The first list is approved as it is. A change is
    recorded once, whichever process sees it. Raises: NotFound if the organization was deleted.
    """
    offered = {tool: OfferedTool(definition) for tool, definition in definitions.items()}
    stored = _stored_lists(organization, vendor)
    current = {*current_scopes, credential_scope}
    snapshots = ToolSnapshot.objects.filter(organization=organization, vendor=vendor)
    # A process compares each credential's list once after its start, so a list without news costs few statements.
    if ended := stored.compared - current:
        snapshots.filter(credential_scope__in=ended).delete()
        stored.compared.difference_update(ended)
    found = compare(offered, stored.beside(credential_scope))
    list_bytes = sum(map(len, definitions.values()))
    own = snapshots.filter(credential_scope=credential_scope)
    is_known = credential_scope in stored.compared and own.update(looked_at=clock.now(), list_bytes=list_bytes)
    if not is_known or found.needs_writing or found.is_news:
        found = _write_changes(organization, vendor, credential_scope, offered, list_bytes, actor)
    if ended := stored.lists.keys() - current:
        KnownTool.objects.filter(organization=organization, vendor=vendor, credential_scope__in=ended).delete()
    return frozenset(found.waiting)


@transaction.atomic
def _write_changes(
    organization: Organization,
    vendor: str,
    scope: str,
    offered: Mapping[str, OfferedTool],
    list_bytes: int,
    actor: Actor,
) -> Comparison:
    lock_organization(organization)
    # Compared again under the lock: the last holder may have stored the same list.
    stored = _stored_lists(organization, vendor)
    found = compare(offered, stored.beside(scope))
    own_list = {"organization": organization, "vendor": vendor, "credential_scope": scope}
    if scope in stored.compared:  # deleted meanwhile, if the credential has ended
        snapshot, _ = ToolSnapshot.objects.get_or_create(**own_list, defaults={"list_bytes": list_bytes})
    else:
        snapshot = ToolSnapshot.objects.create(**own_list, list_bytes=list_bytes)
    rows = KnownTool.objects.filter(organization=organization, vendor=vendor)
    own = rows.filter(credential_scope=scope)
    for names in _portions(found.obsolete):
        own.filter(tool__in=names).delete()
    _keep_approved_texts(own, [*found.moved, *found.gone])
    for names in _portions(found.gone):
        own.filter(tool__in=names).update(seen_sha256=NOT_OFFERED, seen_definition="", seen_at=clock.now())
    fresh = found.fresh if scope == GENERAL_LIST else found.fresh[: _room(rows)]
    made = [_row(organization, vendor, scope, tool, offered[tool], is_approved=tool in found.trusted) for tool in fresh]
    KnownTool.objects.bulk_create(made)
    moved = [_row(organization, vendor, scope, tool, offered[tool], is_approved=False) for tool in found.moved]
    _overwrite(moved, _SEEN_COLUMNS)
    approved = [_row(organization, vendor, scope, tool, offered[tool], is_approved=True) for tool in found.approved]
    _overwrite(approved, [*_SEEN_COLUMNS, "approved_sha256", "approved_definition"])
    if len(stored.lists.get(GENERAL_LIST, ())) + len(found.fresh) > KEPT_TOOLS:
        _forget_oldest(rows.filter(credential_scope=GENERAL_LIST))
    if found.is_news:
        record_changes(organization, snapshot, found, actor)
    return found


def _row(
    organization: Organization, vendor: str, scope: str, tool: str, offered: OfferedTool, *, is_approved: bool
) -> KnownTool:
    return KnownTool(
        organization=organization,
        vendor=vendor,
        credential_scope=scope,
        tool=tool,
        seen_sha256=offered.fingerprint,
        seen_definition=offered.text,
        approved_sha256=offered.fingerprint if is_approved else b"",
        # Stored once: the text of an approved definition is in seen_definition.
        approved_definition="",
    )


def _keep_approved_texts(rows: QuerySet[KnownTool], tools: Sequence[str]) -> None:
    for names in _portions(tools):
        # Copied before the seen text is overwritten.
        unchanged = rows.filter(tool__in=names, approved_sha256=F("seen_sha256"))
        unchanged.update(approved_definition=F("seen_definition"))


def _overwrite(rows: Sequence[KnownTool], columns: list[str]) -> None:
    if rows:
        # An upsert in one statement: bulk_update would build a CASE for each value.
        unique = ["organization", "vendor", "credential_scope", "tool"]
        KnownTool.objects.bulk_create(rows, update_conflicts=True, unique_fields=unique, update_fields=columns)


def _room(rows: QuerySet[KnownTool]) -> int:
    return max(KEPT_TOOLS_OF_FURTHER_LISTS - rows.exclude(credential_scope=GENERAL_LIST).count(), 0)


def _forget_oldest(rows: QuerySet[KnownTool]) -> None:
    surplus = rows.count() - KEPT_TOOLS
    if surplus > 0:
        # Tools that the vendor removed first are deleted first.
        gone = rows.filter(seen_sha256=NOT_OFFERED).order_by("seen_at", "pk")
        for pks in _portions(list(gone.values_list("pk", flat=True)[:surplus])):
            rows.filter(pk__in=pks).delete()


@dataclass(frozen=True, slots=True)
class _StoredLists:
    """The stored rows of one vendor's lists in one organization."""

    lists: Mapping[str, KnownTools]  # by scope
    compared: set[str]  # scopes with a snapshot

    def beside(self, scope: str) -> KnownLists:
        """The lists as the list of `scope` is compared with them."""
        others = (rows.values() for owner, rows in self.lists.items() if owner != scope)
        return KnownLists(
            rows=self.lists.get(scope, {}),
            general=None if scope == GENERAL_LIST else self.lists.get(GENERAL_LIST, {}),
            trusted=frozenset(row.approved for rows in others for row in rows if row.approved),
            is_first=not {*self.compared, *self.lists} & {scope, GENERAL_LIST},
        )


def _stored_lists(organization: Organization, vendor: str) -> _StoredLists:
    # Only fingerprints are read; the texts stay in the database.
    has_text = ExpressionWrapper(~Q(seen_definition=""), output_field=BooleanField())
    stored = KnownTool.objects.filter(organization=organization, vendor=vendor).annotate(has_text=has_text)
    columns = ("credential_scope", "tool", "seen_sha256", "approved_sha256", "has_text")
    lists: dict[str, dict[str, KnownFingerprints]] = {}
    for owner, tool, seen, approved, is_kept in stored.values_list(*columns):
        lists.setdefault(owner, {})[tool] = KnownFingerprints(bytes(seen), bytes(approved), is_kept)
    snapshots = ToolSnapshot.objects.filter(organization=organization, vendor=vendor)
    return _StoredLists(lists, set(snapshots.values_list("credential_scope", flat=True)))


def _portions(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _NAMES_IN_A_STATEMENT):
        yield items[start : start + _NAMES_IN_A_STATEMENT]

"""Pure: one list of a vendor's tools compared with the organization's stored tools. Spec: D78

A list belongs to the credential that fetched it; the general list is that of the most general credential. All tools of
the general list are kept; of further lists only those that differ from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

# Bytes of one stored definition. A larger one is compared by its fingerprint and not shown.
KEPT_BYTES = 32 * 1024
# The fingerprint of a tool that the vendor removed.
NOT_OFFERED = b""
_VERSION = b"\x02"
# Fingerprints of version 1 had no version byte and covered fewer members.
_FIRST_VERSION_BYTES = 32
_MEMBERS_OF_FIRST_VERSION = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_canonical = msgspec.json.Encoder(order="sorted").encode


class OfferedTool:
    """One tool of the vendor's current list. `definition`: canonical JSON."""

    def __init__(self, definition: bytes) -> None:
        self.fingerprint = _VERSION + hashlib.sha256(definition).digest()
        self._definition = definition

    @property
    def text(self) -> str:
        """The definition to store; "" if it is larger than KEPT_BYTES."""
        return self._definition.decode() if len(self._definition) <= KEPT_BYTES else ""

    @cached_property
    def _first_version(self) -> bytes:
        members = msgspec.json.decode(self._definition)
        agreed = {name: members[name] for name in _MEMBERS_OF_FIRST_VERSION if name in members}
        return hashlib.sha256(_canonical(agreed)).digest()

    def matches(self, fingerprint: bytes) -> bool:
        """Whether a stored fingerprint, of either version, belongs to this definition."""
        if len(fingerprint) == _FIRST_VERSION_BYTES:
            return fingerprint == self._first_version
        return fingerprint == self.fingerprint


@dataclass(frozen=True, slots=True)
class KnownFingerprints:
    """One stored tool. `has_text`: the text of the definition seen last is stored."""

    seen: bytes
    approved: bytes
    has_text: bool

    @property
    def is_approved(self) -> bool:
        return self.seen == self.approved


KnownTools = Mapping[str, KnownFingerprints]


@dataclass(frozen=True, slots=True)
class KnownLists:
    """The stored rows of the compared list and of the general list."""

    rows: KnownTools
    general: KnownTools | None  # None: the list is the general one
    # Approved fingerprints of the vendor's tools on other lists.
    trusted: frozenset[bytes]
    # Whether neither of these two lists was compared before.
    is_first: bool


@dataclass(slots=True)
class Comparison:
    """Tool names. The first three are changes by the vendor; the others are the rows to write."""

    # Changes by the vendor.
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    # New rows; those also in `trusted` start approved.
    fresh: list[str] = field(default_factory=list)
    trusted: set[str] = field(default_factory=set)
    # Rows that get the offered definition as last seen.
    moved: list[str] = field(default_factory=list)
    # Rows that get the offered definition as last seen and as approved.
    approved: list[str] = field(default_factory=list)
    # Removed tools that keep their approval, in case they return.
    gone: list[str] = field(default_factory=list)
    # Rows to delete.
    obsolete: list[str] = field(default_factory=list)
    # Offered tools that differ from their approved definition.
    waiting: set[str] = field(default_factory=set)

    @property
    def is_news(self) -> bool:
        """Whether the vendor changed its tools."""
        return bool(self.added or self.changed or self.removed)

    @property
    def needs_writing(self) -> bool:
        return bool(self.fresh or self.moved or self.approved or self.gone or self.obsolete)


def compare(offered: Mapping[str, OfferedTool], known: KnownLists) -> Comparison:
    """A definition that is approved on another list of the vendor is approved on this one."""
    found = Comparison()
    for tool in sorted(offered):
        general = None if known.general is None else known.general.get(tool)
        if general is not None and offered[tool].matches(general.seen):
            if not general.is_approved:
                found.waiting.add(tool)
            continue
        row = known.rows.get(tool)
        if row is None:
            _note_unknown(found, tool, offered[tool], known)
        else:
            _note_known(found, tool, offered[tool], row)
    for tool, row in sorted(known.rows.items()):
        if known.general is not None:
            if tool not in offered or offered[tool].matches(_seen(known.general, tool)):
                found.obsolete.append(tool)
        elif tool not in offered:
            _note_missing(found, tool, row)
    return found


def _note_unknown(found: Comparison, tool: str, offered: OfferedTool, known: KnownLists) -> None:
    found.fresh.append(tool)
    if known.is_first or any(offered.matches(each) for each in known.trusted):
        found.trusted.add(tool)
    else:
        found.waiting.add(tool)
        found.added.append(tool)


def _note_known(found: Comparison, tool: str, offered: OfferedTool, row: KnownFingerprints) -> None:
    is_approved = offered.matches(row.approved)
    if not is_approved:
        found.waiting.add(tool)
    if not offered.matches(row.seen):
        (found.changed if row.seen else found.added).append(tool)
    # A stored row without its text is written again.
    lacks_text = bool(offered.text) and not row.has_text
    if row.seen == offered.fingerprint and not lacks_text and (not is_approved or row.is_approved):
        return
    (found.approved if is_approved else found.moved).append(tool)


def _note_missing(found: Comparison, tool: str, row: KnownFingerprints) -> None:
    if row.seen != NOT_OFFERED:
        found.removed.append(tool)
    if not row.approved:
        found.obsolete.append(tool)
    elif row.seen != NOT_OFFERED:
        found.gone.append(tool)


def _seen(rows: KnownTools, tool: str) -> bytes:
    row = rows.get(tool)
    return row.seen if row is not None else NOT_OFFERED

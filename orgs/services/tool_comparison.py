"""Pure: one list of a vendor's tools compared with what an organization knows of the vendor.

A list belongs to the credential that it was fetched with. The general list is that of the most general credential; its
tools are all kept. Of every further list only the tools that differ from the general list are kept.   Spec: D78
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

KEPT_BYTES = 32 * 1024  # of one definition; a larger one is compared by its fingerprint and not shown
NOT_OFFERED = b""  # the fingerprint of a tool that is gone
_VERSION = b"\x02"
_FIRST_VERSION_BYTES = 32  # fingerprints of version 1 had no leading byte, and fewer members
_MEMBERS_OF_FIRST_VERSION = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_canonical = msgspec.json.Encoder(order="sorted").encode


class Offered:
    """One tool as the vendor offers it: `definition` is canonical JSON."""

    def __init__(self, definition: bytes) -> None:
        self.fingerprint = _VERSION + hashlib.sha256(definition).digest()
        self._definition = definition

    @property
    def text(self) -> str:
        """The text of the definition as it is kept; "" where it is too large."""
        return self._definition.decode() if len(self._definition) <= KEPT_BYTES else ""

    @cached_property
    def _first_version(self) -> bytes:
        members = msgspec.json.decode(self._definition)
        agreed = {name: members[name] for name in _MEMBERS_OF_FIRST_VERSION if name in members}
        return hashlib.sha256(_canonical(agreed)).digest()

    def matches(self, fingerprint: bytes) -> bool:
        """Whether a stored fingerprint, of whichever version, is of this definition."""
        if len(fingerprint) == _FIRST_VERSION_BYTES:
            return fingerprint == self._first_version
        return fingerprint == self.fingerprint


@dataclass(frozen=True, slots=True)
class KnownFingerprints:
    """One stored tool: the definitions seen last and approved, and whether the text of the former is kept."""

    seen: bytes
    approved: bytes
    has_text: bool

    @property
    def is_approved(self) -> bool:
        """Whether it is as it was when the vendor's tools were approved."""
        return self.seen == self.approved


Known = Mapping[str, KnownFingerprints]


@dataclass(frozen=True, slots=True)
class KnownLists:
    """An organization's knowledge of a vendor, for comparing one list: that list's rows and the general list's.

    `trusted`: approved fingerprints of the vendor's tools on other lists. `is_first`: the list was never compared, and
    for a further list the general one was not either.
    """

    rows: Known
    general: Known | None  # None: the list is the general one
    trusted: frozenset[bytes]
    is_first: bool


@dataclass(slots=True)
class Comparison:
    """Tools by the vendor's own names. `added`, `changed` and `removed` are news; the rest are the rows to write.

    `fresh` tools get a row, those also in `trusted` an approved one. `moved` rows get the offered definition, and
    `approved` ones get it as agreed too. `gone` rows keep their approval, `obsolete` ones are deleted.
    `waiting`: offered tools that are not as they were approved.
    """

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)
    trusted: set[str] = field(default_factory=set)
    moved: list[str] = field(default_factory=list)
    approved: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    obsolete: list[str] = field(default_factory=list)
    waiting: set[str] = field(default_factory=set)

    @property
    def is_news(self) -> bool:
        """Whether the vendor changed its tools."""
        return bool(self.added or self.changed or self.removed)

    @property
    def needs_writing(self) -> bool:
        """Whether a row is not as it should be."""
        return bool(self.fresh or self.moved or self.approved or self.gone or self.obsolete)


def compare(offered: Mapping[str, Offered], known: KnownLists) -> Comparison:
    """The news of a list. A definition that is approved on another list of the vendor is approved here."""
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


def _note_unknown(found: Comparison, tool: str, offered: Offered, known: KnownLists) -> None:
    found.fresh.append(tool)
    if known.is_first or any(offered.matches(each) for each in known.trusted):
        found.trusted.add(tool)
    else:
        found.waiting.add(tool)
        found.added.append(tool)


def _note_known(found: Comparison, tool: str, offered: Offered, row: KnownFingerprints) -> None:
    is_approved = offered.matches(row.approved)
    if not is_approved:
        found.waiting.add(tool)
    if not offered.matches(row.seen):
        (found.changed if row.seen else found.added).append(tool)
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


def _seen(rows: Known, tool: str) -> bytes:
    row = rows.get(tool)
    return row.seen if row is not None else NOT_OFFERED

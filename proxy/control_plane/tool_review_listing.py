"""A vendor's tools as the organization last saw them, prepared for review. No vendor is asked."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.conf import settings
from django.utils.formats import number_format

from gateway.catalog.vendor import Vendor
from gateway.lib.sentences import sentence
from orgs import selectors
from orgs.models import KnownTool, Organization
from proxy.control_plane.tool_diff import DiffPiece, VisibleText, hints, line_diff, visible, word_diff
from proxy.protocol.tool_definitions import description_of, title_of
from proxy.vendors.tool_list import ToolList, build_list

CHARACTERS_PER_TOKEN = 4  # D138
MAX_COMPARED = 10  # enough to review at once; the rest follows after their approval
MAX_NAMED = 100  # changes listed by name
TOOLS_ON_A_PAGE = 250
# A changed tool may be in use; one that is gone cannot be called.
_REVIEW_ORDER = ("changed", "new", "gone")
COMPARE_TIME_S = 0.25  # CPU time per page, because the vendor's text decides how long a comparison takes


@dataclass(frozen=True, slots=True)
class ListedTool:
    """An offered tool. `state` is "new", "changed" or "" (as approved)."""

    name: str
    title: str
    description: VisibleText
    hints: list[str]
    state: str


@dataclass(frozen=True, slots=True)
class ChangedTool:
    """A tool's change since its approval."""

    # The id of its KnownTool row.
    row: int
    name: str
    # Owner of the credential that shows it, in words; "" for the general list.
    owner: str
    # "new", "changed" or "gone".
    state: str
    description: list[DiffPiece]
    schema: list[DiffPiece]
    # Invisible characters in description and schema.
    hidden: int
    # False where a definition is too large to be stored.
    is_comparable: bool
    # Past MAX_COMPARED or COMPARE_TIME_S, only the name is listed.
    is_listed_only: bool = False


@dataclass(frozen=True, slots=True)
class Preview:
    """tools/list for a role or an agent: exposed names with encoded definitions, and an estimated number of tokens."""

    tools: list[tuple[str, VisibleText]]
    tokens: int

    @property
    def about(self) -> str:
        # For example 840, 2.9k, 26k.
        if self.tokens < 1_000:
            return str(self.tokens)
        return f"{number_format(self.tokens / 1_000, 1 if self.tokens < 9_950 else 0)}k"


class ToolReview:
    """One vendor's tools in one organization. Only tools of the general list count as offered."""

    def __init__(self, organization: Organization, vendor: Vendor, owners: Mapping[str, str] | None = None) -> None:
        """`owners`: owner of each further list, in words."""
        self.vendor = vendor
        self.rows: Sequence[Any] = list(selectors.known_tools_with_general_texts(organization, vendor.slug))
        self._owners = owners or {}
        self._offered = [row for row in self.rows if row.is_offered and not row.credential_scope]

    @property
    def names(self) -> list[str]:
        return [row.tool for row in self._offered]

    @property
    def pages(self) -> int:
        return max(-(-len(self._offered) // TOOLS_ON_A_PAGE), 1)

    def tools(self, page: int | None = None) -> list[ListedTool]:
        """All offered tools, or one page of them (from 1)."""
        start = 0 if page is None else (page - 1) * TOOLS_ON_A_PAGE
        return [self._tool(row) for row in self._offered[start : None if page is None else start + TOOLS_ON_A_PAGE]]

    @property
    def unapproved(self) -> list[KnownTool]:
        return [row for row in self.rows if not row.is_approved]

    @cached_property
    def waiting(self) -> int:
        return len(self.unapproved)

    def waiting_by_state(self) -> list[tuple[str, int]]:
        """(state, number of tools), in the order of the review, without states that none has."""
        counted = Counter(map(_state, self.unapproved))
        return [(state, counted[state]) for state in _REVIEW_ORDER if counted[state]]

    def changes(self, clock: Callable[[], float] = time.thread_time) -> list[ChangedTool]:
        """Up to MAX_NAMED changes since the approval: changed tools first, tools that are gone last."""
        waiting = sorted(self.unapproved, key=lambda row: _REVIEW_ORDER.index(_state(row)))[:MAX_NAMED]
        texts = selectors.tool_texts(waiting[:MAX_COMPARED])
        # CPU seconds of this thread, so that a busy machine compares as many tools.
        stop_at = clock() + COMPARE_TIME_S
        found: list[ChangedTool] = []
        for row in waiting:
            is_compared = row.pk in texts and clock() < stop_at
            owner = self._owner(row)
            found.append(_change(row, owner, *texts[row.pk]) if is_compared else _listed(row, owner))
        return found

    def _owner(self, row: KnownTool) -> str:
        return self._owners.get(row.credential_scope, sentence("a deleted key")) if row.credential_scope else ""

    def preview(self, may_call: Callable[[str, bool], bool] = lambda name, is_read_only: True) -> Preview:
        """Uses the functions that build tools/list. `may_call`: by own name, and whether the tool is read-only."""
        listed = self._list
        allowed = [
            tool.exposed_name
            for tool in listed.tools.tools
            if may_call(tool.vendor_name, listed.policy(tool).read_only)
        ]
        encoded = [(name, listed.encoded[name].decode()) for name in sorted(allowed)]
        tokens = sum(len(text) for _, text in encoded) // CHARACTERS_PER_TOKEN
        return Preview([(name, visible(text)) for name, text in encoded], tokens)

    @cached_property
    def _definitions(self) -> dict[str, dict[str, Any]]:
        return {row.tool: _definition(row.tool, row.general_text) for row in self._offered}

    @cached_property
    def _list(self) -> ToolList:
        return build_list(self.vendor, list(self._definitions.values()), settings.VENDOR_TOOL_CONFIG)

    def _tool(self, row: KnownTool) -> ListedTool:
        definition = self._definitions[row.tool]
        return ListedTool(
            name=row.tool,
            title=visible(title_of(definition) or "").text,
            description=visible(description_of(definition)),
            hints=hints(definition.get("annotations")),
            state="" if row.is_approved else _state(row),
        )


def _change(row: KnownTool, owner: str, seen: str, approved: str) -> ChangedTool:
    before, after = _definition(row.tool, approved), _definition(row.tool, seen)
    state = _state(row)
    is_stored = bool(seen or state == "gone") and bool(approved or state == "new")
    texts = [visible(_text(each)) for each in (before, after)]
    rests = [_rest(each) for each in (before, after)]
    return ChangedTool(
        row=row.pk,
        name=row.tool,
        owner=owner,
        state=state,
        description=word_diff(texts[0].text, texts[1].text) if is_stored else [],
        schema=line_diff(rests[0].text, rests[1].text) if is_stored and state != "gone" else [],
        hidden=texts[1].hidden + rests[1].hidden,
        is_comparable=is_stored,
    )


def _listed(row: KnownTool, owner: str) -> ChangedTool:
    return ChangedTool(row.pk, row.tool, owner, _state(row), [], [], 0, is_comparable=False, is_listed_only=True)


def _state(row: KnownTool) -> str:
    return sentence("gone") if not row.is_offered else sentence("changed") if row.approved_sha256 else sentence("new")


def _definition(tool: str, stored: str) -> dict[str, Any]:
    """The stored definition; without one, only its name."""
    found: dict[str, Any] = json.loads(stored) if stored else {"name": tool}
    return found


def _text(definition: Mapping[str, Any]) -> str:
    text = definition.get("description")
    return text if isinstance(text, str) else ""


def _rest(definition: Mapping[str, Any]) -> VisibleText:
    rest = {name: value for name, value in definition.items() if name not in {"name", "description"}}
    return visible(json.dumps(rest, indent=2, sort_keys=True, ensure_ascii=False) if rest else "")

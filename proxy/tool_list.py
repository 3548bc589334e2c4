"""A vendor's tools as an organization saw them last, ready for the people who decide about them. No vendor is asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.conf import settings

from gateway.catalog.vendor import Vendor
from orgs import selectors
from orgs.grants import Allowlists, role_may_call_tool
from orgs.models import KnownTool, Organization
from orgs.roles import Role
from proxy.protocol.tool_definitions import description_of, title_of
from proxy.tool_text import Piece, Shown, hints, line_difference, shown, word_difference
from proxy.vendors.tool_index import ToolIndex, build_index

CHARACTERS_PER_TOKEN = 4  # D138
COMPARED_AT_ONCE = 10  # nobody reads more at once, and the rest comes up when these are approved
COMPARING_S = 0.25  # of a page; what a vendor writes decides how long one comparison takes


@dataclass(frozen=True, slots=True)
class ListedTool:
    """One tool that the vendor offers. `state` is new, changed, or empty when it is as approved."""

    name: str
    title: str
    description: Shown
    hints: list[str]
    state: str


@dataclass(frozen=True, slots=True)
class ChangedTool:
    """What happened to a tool since the vendor's tools were approved. `state`: new, changed or gone.

    `hidden` counts the characters of description and schema that no screen shows. `is_comparable` is False where a
    definition is too large to keep, `is_listed_only` True past COMPARED_AT_ONCE or COMPARING_S.
    """

    name: str
    state: str
    description: list[Piece]
    schema: list[Piece]
    hidden: int
    is_comparable: bool
    is_listed_only: bool = False


@dataclass(frozen=True, slots=True)
class Preview:
    """What tools/list gives a role: exposed name and encoded definition, and about how many tokens that is."""

    tools: list[tuple[str, str]]
    tokens: int

    @property
    def about(self) -> str:
        """The tokens as an estimate is said: 840, 2.9k, 26k."""
        if self.tokens < 1_000:
            return str(self.tokens)
        return f"{self.tokens / 1_000:.{1 if self.tokens < 9_950 else 0}f}k"


class ToolList:
    """The tools of one vendor in one organization."""

    def __init__(self, organization: Organization, vendor: Vendor) -> None:
        self.vendor = vendor
        self.rows: Sequence[KnownTool] = list(selectors.known_tools(organization, vendor.slug))
        self._offered = [row for row in self.rows if row.is_offered]
        self._definitions = {row.tool: _definition(row.tool, row.seen_definition) for row in self._offered}

    @property
    def names(self) -> list[str]:
        """What the vendor offers, by its own names, in order."""
        return list(self._definitions)

    def tools(self) -> list[ListedTool]:
        """Each tool that is offered."""
        return [self._tool(row) for row in self._offered]

    def changes(self, clock: Callable[[], float] = time.thread_time) -> list[ChangedTool]:
        """What is not as it was approved. `clock`: seconds of work; a busy machine shows no fewer tools."""
        ends_at = clock() + COMPARING_S
        found: list[ChangedTool] = []
        for row in self.rows:
            if not row.is_approved:
                is_compared = len(found) < COMPARED_AT_ONCE and clock() < ends_at
                found.append(_change(row) if is_compared else _listed(row))
        return found

    def preview(self, role: Role, allowlists: Allowlists) -> Preview:
        """By the functions that also make tools/list."""
        index = self._index
        allowed = [
            tool.exposed_name
            for tool in index.tools.tools
            if role_may_call_tool(role, self.vendor.slug, tool.vendor_name, allowlists)
        ]
        encoded = [(name, index.encoded[name].decode()) for name in sorted(allowed)]
        return Preview(encoded, sum(len(text) for _, text in encoded) // CHARACTERS_PER_TOKEN)

    @cached_property
    def _index(self) -> ToolIndex:
        return build_index(self.vendor, list(self._definitions.values()), settings.VENDOR_TOOL_CONFIG, 0.0)

    def _tool(self, row: KnownTool) -> ListedTool:
        definition = self._definitions[row.tool]
        return ListedTool(
            name=row.tool,
            title=shown(title_of(definition) or "").text,
            description=shown(description_of(definition)),
            hints=hints(definition.get("annotations")),
            state="" if row.is_approved else _state(row),
        )


def _change(row: KnownTool) -> ChangedTool:
    before, after = (_definition(row.tool, text) for text in (row.approved_definition, row.seen_definition))
    state = _state(row)
    is_kept = bool(row.seen_definition or state == "gone") and bool(row.approved_definition or state == "new")
    texts = [shown(_text(each)) for each in (before, after)]
    rests = [_rest(each) for each in (before, after)]
    return ChangedTool(
        name=row.tool,
        state=state,
        description=word_difference(texts[0].text, texts[1].text) if is_kept else [],
        schema=line_difference(rests[0].text, rests[1].text) if is_kept and state != "gone" else [],
        hidden=texts[1].hidden + rests[1].hidden,
        is_comparable=is_kept,
    )


def _listed(row: KnownTool) -> ChangedTool:
    return ChangedTool(row.tool, _state(row), [], [], 0, is_comparable=False, is_listed_only=True)


def _state(row: KnownTool) -> str:
    return "gone" if not row.is_offered else "changed" if row.approved_sha256 else "new"


def _definition(tool: str, stored: str) -> dict[str, Any]:
    """The stored definition; one that was not kept has a name at least."""
    found: dict[str, Any] = json.loads(stored) if stored else {"name": tool}
    return found


def _text(definition: Mapping[str, Any]) -> str:
    text = definition.get("description")
    return text if isinstance(text, str) else ""


def _rest(definition: Mapping[str, Any]) -> Shown:
    """Everything but name and description, a member to a line."""
    rest = {name: value for name, value in definition.items() if name not in {"name", "description"}}
    return shown(json.dumps(rest, indent=2, sort_keys=True, ensure_ascii=False) if rest else "")

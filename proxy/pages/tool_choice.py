"""The selected tools of a list: as stored, as proposed, or as posted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.http import QueryDict
from django.utils.translation import gettext

from gateway.lib.translated import translated
from proxy.control_plane.tool_review_listing import ToolReview


@dataclass(frozen=True, slots=True)
class Choice:
    """`is_list` False: every tool is allowed."""

    is_list: bool
    tools: tuple[str, ...]
    # Version of the list it was made from; "" without a list.
    version: str
    # True if it differs from the stored list.
    is_unsaved: bool = False
    # Where the proposal came from, in words.
    origin: str = ""


class StoredList(Protocol):
    """The row of a list, of a role or of an agent."""

    tools: Any
    updated_at: Any
    updated_by: Any

    @property
    def version(self) -> str: ...


def from_row(row: StoredList | None) -> Choice:
    return Choice(True, tuple(row.tools), row.version) if row else Choice(False, (), "")


def from_form(form: QueryDict) -> Choice:
    is_list = form.get("mode") == "list"
    return Choice(is_list, tuple(form.getlist("tool")) if is_list else (), form.get("version", ""), is_unsaved=True)


def proposed(begin: str, tools: ToolReview, row: StoredList | None, others: Mapping[str, Sequence[str]]) -> Choice:
    """A starting point for the list: everything, nothing, read-only tools, or one of `others`, lists by role."""
    version = row.version if row else ""
    if begin in others:
        return Choice(
            True, tuple(others[begin]), version, True, gettext("The %(role)s list") % {"role": translated(begin)}
        )
    match begin:
        case "all":
            return Choice(True, tuple(tools.names), version, True, gettext("All tools"))
        case "read-only":
            names = tuple(tool.name for tool in tools.tools() if "read-only" in tool.hints)
            return Choice(True, names, version, True, gettext("Tools that the vendor marks as read-only"))
        case "none":
            return Choice(True, (), version, True, gettext("No tools"))
    return from_row(row)

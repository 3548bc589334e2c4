"""A role's selected tools: as stored, as proposed, or as posted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.http import QueryDict

from orgs.models import ToolAllowlist
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


def from_row(row: ToolAllowlist | None) -> Choice:
    return Choice(True, tuple(row.tools), row.version) if row else Choice(False, (), "")


def from_form(form: QueryDict) -> Choice:
    is_list = form.get("mode") == "list"
    return Choice(is_list, tuple(form.getlist("tool")) if is_list else (), form.get("version", ""), is_unsaved=True)


def proposed(begin: str, tools: ToolReview, lists: Mapping[str, ToolAllowlist], role: str) -> Choice:
    """A starting point for the role's list: everything, nothing, read-only tools, or another role's list."""
    version = lists[role].version if role in lists else ""
    if begin in lists:
        return Choice(True, tuple(lists[begin].tools), version, True, f"The list of the role {begin}")
    match begin:
        case "all":
            return Choice(True, tuple(tools.names), version, True, "Every tool")
        case "read-only":
            names = tuple(tool.name for tool in tools.tools() if "read-only" in tool.hints)
            return Choice(True, names, version, True, "Every tool that the vendor calls read-only")
        case "none":
            return Choice(True, (), version, True, "No tool")
    return from_row(lists.get(role))

"""The page that checks the access of oneself and, for admins, of any person or agent of the organization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy

from gateway.catalog import registry
from gateway.lib.errors import Forbidden
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.search import MAX_SEARCH_CHARACTERS, typed_text
from gateway.web.signed_in import is_by_htmx
from orgs.allowed_items import ItemType
from orgs.roles import Role
from proxy.control_plane.explanation import Explanation, explain_access
from proxy.pages.access_fixes import fix_of
from proxy.pages.caller_search import FoundCaller, callers_meant, callers_named
from proxy.pages.tool_search import tools_named
from proxy.protocol import item_addresses
from proxy.protocol.tool_names import exposed_name

# Suggestions while typing and choices after a search: people, agents and tools each.
SUGGESTED = 20
TOOL_MAX_CHARACTERS = 200
ADDRESS_MAX_CHARACTERS = 1_100  # with the vendor's slug before it


@dataclass(frozen=True, slots=True)
class Question:
    """A caller and a tool as they were typed, and what they were found to be.

    `fault`: why there is no answer. `choices`: (address, name, note), where several match.
    """

    explanation: Explanation | None = None
    fault: str = ""
    choices: Sequence[tuple[str, str, str]] = field(default=())


class ExplainPage(OrgPage):
    """GET /orgs/:orgId/explain?who=&tool=[&kind=][&vendor=]. Asks no vendor. Spec: §5 · D33, D67, D77"""

    gates = {"GET": Gate(Role.MEMBER)}
    title = gettext_lazy("Check access")
    nav_route = "proxy_pages:explain"

    def get(self, request: HttpRequest) -> HttpResponse:
        if is_by_htmx(request):
            return render(request, "proxy/_suggestions.html", {"suggestions": self._suggestions()})
        asked = self._asked()
        fix = fix_of(asked.explanation, self.membership) if asked.explanation else None
        context = {
            "who": self._who,
            "tool": self._tool,
            "kind": self._kind,
            "asked": asked,
            "fault": asked.fault,
            "explanation": asked.explanation,
            "fix": fix,
            "may_choose": self._may_choose,
            "people": self._callers("") if self._may_choose else (),
            "tools": self._tools(""),
        }
        return self.page("proxy/explain.html", context, status=400 if asked.fault else 200)

    @property
    def _may_choose(self) -> bool:
        return self.membership.has_role(Role.ADMIN)

    @property
    def _who(self) -> str:
        return typed_text(self.request, "who")

    @property
    def _tool(self) -> str:
        """The exposed tool name; with `vendor`, `tool` is the vendor's own name as in the request log."""
        tool = typed_text(self.request, "tool")
        vendor = registry.vendor_or_none(self.request.GET.get("vendor", ""))
        if vendor and tool and self._kind is ItemType.RESOURCES:
            is_exposed = item_addresses.split(tool, (vendor.slug,)) is not None
            return tool if is_exposed else item_addresses.exposed(vendor.slug, tool)
        return exposed_name(vendor.tool_prefix, tool) if vendor and tool else tool

    @property
    def _kind(self) -> ItemType | None:
        """None: a tool."""
        kind = self.request.GET.get("kind", "")
        return ItemType(kind) if kind in list(ItemType) else None

    def _asked(self) -> Question:
        """Raises: Forbidden."""
        tool, subject = self._tool, str(self.actor.id)
        own = {subject, self.actor.email.casefold()}
        if self._who and self._who.casefold() not in own:
            # Members may ask about themselves only.
            if not self._may_choose:
                raise Forbidden(gettext("You can check only your own access."))
            found = callers_meant(self.organization, self._who, SUGGESTED)
            if len(found) > 1:
                return Question(choices=[self._choice(each.name, each.note, who=each.subject) for each in found])
            # An unknown subject is refused at the token step.
            subject = found[0].subject if found else self._who
        if not tool:
            return Question()
        most = TOOL_MAX_CHARACTERS if self._kind is None else ADDRESS_MAX_CHARACTERS
        if len(tool) > most:
            return Question(
                fault=gettext("A tool name can have at most %(tool_max_characters)s characters.")
                % {"tool_max_characters": most}
            )
        if self._kind is None and registry.load().owner_of(tool) is None:
            tools = self._tools(tool)
            if tools:
                return Question(choices=[self._choice(name, vendor, tool=name) for name, vendor in tools])
        is_own = subject == str(self.actor.id)
        return Question(explain_access(subject, tool, kind=self._kind, org_id=self.organization.id, shows_count=is_own))

    def _choice(self, name: str, note: str, **changed: str) -> tuple[str, str, str]:
        return f"?{urlencode({'who': self._who, 'tool': self._tool, 'kind': self._kind or '', **changed})}", name, note

    def _suggestions(self) -> list[tuple[str, str]]:
        """(value to type, name) of the field that a script asks for."""
        if self.request.GET.get("suggest") == "tool":
            return self._tools(self._tool[:MAX_SEARCH_CHARACTERS])
        found = self._callers(self._who[:MAX_SEARCH_CHARACTERS]) if self._may_choose else []
        return [(each.typed, each.name) for each in found]

    def _callers(self, words: str) -> list[FoundCaller]:
        return callers_named(self.organization, words, SUGGESTED)

    def _tools(self, words: str) -> list[tuple[str, str]]:
        """(exposed name, name of the vendor)."""
        return [(each.name, each.vendor.name) for each in tools_named(self.membership, words, SUGGESTED)]

"""The search of an organization: pages, people, agents, vendors, tools and the calls of a request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy

from audit.selectors import has_call_of_request
from billing import entitlements
from credentials.selectors import connected_vendors
from gateway.catalog import registry
from gateway.lib.request_ids import is_request_id
from gateway.web.gate import Gate
from gateway.web.navigation import navigation
from gateway.web.org_page import OrgPage
from gateway.web.search import search_words
from gateway.web.signed_in import is_by_htmx
from oauth_ext.selectors import service_clients_named
from orgs import selectors
from orgs.models import Membership
from orgs.roles import Role
from proxy.pages.tool_search import FoundTool, tools_named

# Hits of each group.
SHOWN = 8


@dataclass(frozen=True, slots=True)
class Hit:
    name: str
    url: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    label: str
    hits: tuple[Hit, ...]


class SearchPage(OrgPage):
    """GET /orgs/:orgId/search?q=. A script gets the list of hits alone."""

    gates = {"GET": Gate(Role.MEMBER)}
    title = gettext_lazy("Search")
    nav_route = ""

    def get(self, request: HttpRequest) -> HttpResponse:
        words = search_words(request, "q")
        groups = groups_found(self.membership, words)
        if is_by_htmx(request):
            return render(request, "proxy/_search_options.html", {"groups": groups, "asked": words})
        return self.page("proxy/search.html", {"groups": groups, "asked": words})


def groups_found(viewer: Membership, words: str) -> list[Group]:
    """Things that the viewer may open and that match each of the words. Without words: the pages alone."""
    found = [(gettext("Pages"), _pages(viewer, words))]
    if words:
        found += [
            (gettext("People"), _people(viewer, words)),
            (gettext("Agents"), _agents(viewer, words)),
            (gettext("Vendors"), _vendors(viewer, words)),
            (gettext("Tools"), (_tool_hit(viewer, each) for each in tools_named(viewer, words, SHOWN))),
            (gettext("Requests"), _requests(viewer, words)),
        ]
    groups = [Group(label, tuple(hits)) for label, hits in found]
    return [group for group in groups if group.hits]


def _page(viewer: Membership, route: str, *ids: object) -> str:
    return reverse(route, args=[viewer.organization_id, *ids])


def _matches(text: str, words: str) -> bool:
    return all(word in text.casefold() for word in words.casefold().split())


def _pages(viewer: Membership, words: str) -> Iterable[Hit]:
    for section in navigation(viewer, ""):
        for item in section["items"]:
            if _matches(f"{section['label']} {item['label']}", words):
                yield Hit(item["label"], item["url"], section["label"])


def _people(viewer: Membership, words: str) -> Iterable[Hit]:
    for row in selectors.members(viewer.organization, matching=words)[:SHOWN]:
        # Members open their own page only, and find the others in the list of members.
        if viewer.has_role(Role.ADMIN) or row.pk == viewer.pk:
            url = _page(viewer, "orgs:person", row.user_id)
        else:
            url = f"{_page(viewer, 'orgs:members')}?{urlencode({'q': row.user.name})}"
        yield Hit(row.user.name, url, row.user.email)


def _agents(viewer: Membership, words: str) -> Iterable[Hit]:
    if viewer.has_role(Role.ADMIN):
        for row in service_clients_named(viewer.organization, words)[:SHOWN]:
            yield Hit(row.name, _page(viewer, "oauth_pages:service-client", row.client_id), row.client_id)


def _vendors(viewer: Membership, words: str) -> Iterable[Hit]:
    connected = connected_vendors(viewer.organization)
    vendors = [each for each in registry.load().all() if each.slug in connected]
    for vendor in [each for each in vendors if _matches(f"{each.name} {each.slug}", words)][:SHOWN]:
        yield Hit(vendor.name, _page(viewer, "proxy_pages:vendor", vendor.slug))


def _tool_hit(viewer: Membership, tool: FoundTool) -> Hit:
    if viewer.has_role(Role.ADMIN):
        return Hit(tool.name, _page(viewer, "proxy_pages:tool-access", tool.vendor.slug), tool.vendor.name)
    url = f"{_page(viewer, 'proxy_pages:explain')}?{urlencode({'tool': tool.name})}"
    return Hit(tool.name, url, tool.vendor.name)


def _requests(viewer: Membership, words: str) -> Iterable[Hit]:
    # The gate of the request log. Spec: D147
    if not viewer.has_role(Role.ADMIN) or not entitlements.is_active(viewer.organization):
        return
    if is_request_id(words) and has_call_of_request(viewer.organization_id, words):
        yield Hit(
            words, f"{_page(viewer, 'audit_pages:request-log')}?{urlencode({'request_id': words})}", gettext("Calls")
        )

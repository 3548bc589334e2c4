"""Server access as a matrix: members, teams or agents in rows, vendors in columns, and the reasons for access."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Page
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy, ngettext

from credentials.selectors import organization_vendors, people_vendors, vendors_by_service_client
from gateway.catalog import registry
from gateway.lib import clock, ids
from gateway.lib.errors import Invalid
from gateway.lib.sentences import sentence
from gateway.lib.translated import translated
from gateway.web import undo
from gateway.web.access_end import CHOICES, read_end
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from gateway.web.search import search_words
from oauth_ext.selectors import service_client_vendor_rows, service_clients
from oauth_ext.services.service_client_vendor_changes import ClientChangeCounts, change_client_vendors
from orgs import selectors
from orgs.models import Membership
from orgs.roles import Role
from orgs.server_access_reasons import AccessReason, effective_server_access_of
from orgs.services.server_access_changes import ChangeCounts, PrincipalVendor, change_member_access, change_team_access

# Members, teams or agents, and vendors, on one page: bounds the form and its queries.
ROWS = 20
COLUMNS = 12
# Cells that one undo button takes back.
MAX_UNDONE = 50


class View(StrEnum):
    MEMBERS = sentence("members")
    TEAMS = sentence("teams")
    AGENTS = sentence("agents")


@dataclass(frozen=True, slots=True)
class Column:
    """One vendor. `is_connected`: a credential for people exists; otherwise server access waits for one."""

    slug: str
    name: str
    is_connected: bool


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """Access of one row to one vendor. `reasons`: text, without the direct access, which ends at `ends_at`."""

    vendor: Column
    is_direct: bool
    reasons: tuple[str, ...] = ()
    ends_at: datetime | None = None

    @property
    def is_allowed(self) -> bool:
        return self.is_direct or bool(self.reasons)


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """`key`: the id in the form. `url`: of its own page. `is_open`: it can use every vendor, and ticks do not count.

    `has_role`: it can use every vendor by its role, and ticks count from the day on which the role ends.
    """

    key: UUID
    label: str
    note: str
    cells: list[MatrixCell]
    url: str
    is_open: bool = False
    has_role: bool = False

    @property
    def direct(self) -> str:
        """Slugs granted directly when the page was made."""
        return " ".join(cell.vendor.slug for cell in self.cells if cell.is_direct)


@dataclass(frozen=True, slots=True)
class ColumnPage:
    """Vendors `start` to `end` of `total`; `before` and `after`: offsets or None."""

    shown: list[Column]
    start: int
    end: int
    total: int
    before: int | None
    after: int | None


class ServerAccessPage(OrgPage):
    """GET, POST /orgs/:orgId/access[?view=teams|agents&q=&vendor=&page=]. Spec: §4.5 · D33, D34, D57-D59, D173"""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = gettext_lazy("Vendor access")
    nav_route = "orgs:server-access"

    @property
    def view(self) -> View:
        asked = self.request.GET.get("view", "")
        return View(asked) if asked in list(View) else View.MEMBERS

    def get(self, request: HttpRequest) -> HttpResponse:
        connected = people_vendors(self.organization)
        matching = self._columns(connected)
        columns = _column_page(matching, request.GET.get("from", ""))
        listed: dict[View, Callable[[], Any]] = {
            View.MEMBERS: self._members,
            View.TEAMS: self._teams,
            View.AGENTS: self._agents,
        }
        rows: dict[View, Callable[[Page[Any]], list[MatrixRow]]] = {
            View.MEMBERS: lambda page: self._member_rows(page, columns.shown, connected),
            View.TEAMS: lambda page: self._team_rows(page, columns.shown),
            View.AGENTS: lambda page: self._agent_rows(page, columns.shown),
        }
        page: Page[Any] = page_of(request, listed[self.view](), size=ROWS)
        context = {
            "view": self.view.value,
            "one": _ONE[self.view],
            "asked": self._asked,
            "vendor_asked": search_words(request, "vendor"),
            "columns": columns,
            "page": page,
            "rows": rows[self.view](page),
            "has_vendors": bool(connected) or bool(matching),
            "connected_count": len(connected),
            "here": request.get_full_path(),
            "undo": undo.take(request),
            "end_choices": CHOICES,
        }
        return self.page("orgs/server_access.html", context)

    def post(self, request: HttpRequest) -> HttpResponse:
        # Only the differences from the page as it was shown: other people's changes stay.
        had, wanted = _read_pairs(request.POST.getlist("had")), _read_pairs(request.POST.getlist("grant"))
        added, removed = wanted - had, had - wanted
        try:
            end = read_end(request.POST, clock.now())
        except Invalid as refusal:
            messages.error(request, gettext("%(message)s Nothing changed.") % {"message": translated(refusal.message)})
            return redirect(request.get_full_path())
        subject: dict[str, Any] = {
            "actor": self.actor,
            "organization": self.organization,
            "added": added,
            "removed": removed,
            "expires_at": end,
        }
        done: ChangeCounts | ClientChangeCounts
        match self.view:
            case View.TEAMS:
                done = change_team_access(**subject)
            case View.AGENTS:
                done = change_client_vendors(**subject)
            case _:
                done = change_member_access(**subject)
        _report_changes(request, done, added, removed)
        return redirect(request.get_full_path())

    @property
    def _asked(self) -> str:
        return search_words(self.request, "q")

    def _members(self) -> Any:
        return selectors.members(self.organization, matching=self._asked).select_related("organization", "user")

    def _teams(self) -> Any:
        return selectors.teams(self.organization, matching=self._asked)

    def _agents(self) -> Any:
        return service_clients(self.organization, matching=self._asked)

    def _columns(self, connected: Sequence[str]) -> list[Column]:
        # Connected vendors, and vendors granted before they are connected.
        if self.view is View.AGENTS:
            connected = organization_vendors(self.organization)
            rows: QuerySet[Any] = service_client_vendor_rows(self.organization)
        else:
            rows = selectors.server_access(self.organization)
        granted = rows.order_by().values_list("vendor", flat=True)
        catalog = registry.load()
        words = search_words(self.request, "vendor").casefold().split()
        found = []
        for slug in {*connected, *granted.distinct()}:
            vendor = catalog.get(slug)
            if vendor is not None and all(word in f"{vendor.name.casefold()} {slug}" for word in words):
                found.append(Column(slug, vendor.name, slug in connected))
        return sorted(found, key=lambda column: (column.name.casefold(), column.slug))

    def _member_rows(
        self, members: Iterable[Membership], columns: Sequence[Column], connected: Sequence[str]
    ) -> list[MatrixRow]:
        shown = list(members)
        access = effective_server_access_of(shown, connected)
        rows = []
        for member in shown:
            cells = [_cell(column, access[member.pk]) for column in columns]
            note = f"{member.user.email}, {translated(member.role)}"
            url = self._url("orgs:person-access", member.user_id)
            has_role = member.has_role(Role.ADMIN)
            rows.append(MatrixRow(member.user_id, member.user.name, note, cells, url, has_role=has_role))
        return rows

    def _team_rows(self, teams: Iterable[Any], columns: Sequence[Column]) -> list[MatrixRow]:
        shown = list(teams)
        held = selectors.server_access(self.organization).filter(team__in=shown)
        ends = {(row.team_id, row.vendor): row.expires_at for row in held}
        rows = []
        for team in shown:
            cells = [
                MatrixCell(column, (team.pk, column.slug) in ends, ends_at=ends.get((team.pk, column.slug)))
                for column in columns
            ]
            count = team.member_count
            note = ngettext("%(count)s member", "%(count)s members", count) % {"count": count}
            rows.append(MatrixRow(team.pk, team.name, note, cells, self._url("orgs:team", team.pk)))
        return rows

    def _agent_rows(self, clients: Iterable[Any], columns: Sequence[Column]) -> list[MatrixRow]:
        shown = list(clients)
        own = vendors_by_service_client(self.organization)
        held = service_client_vendor_rows(self.organization).filter(client__in=shown)
        ends = {(row.client_id, row.vendor): row.expires_at for row in held}
        rows = []
        for client in shown:
            cells = []
            for column in columns:
                given = (client.pk, column.slug)
                reasons = [gettext("all vendors")] if not client.restricted and column.is_connected else []
                reasons += [gettext("own credentials")] if column.slug in own.get(client.pk, ()) else []
                cells.append(MatrixCell(column, given in ends, tuple(reasons), ends.get(given)))
            note = gettext("all vendors") if not client.restricted else gettext("chosen vendors")
            note = gettext("%(vendors)s, expired") % {"vendors": note} if client.is_expired() else note
            url = self._url("oauth_pages:service-client-access", client.client_id)
            rows.append(MatrixRow(client.pk, client.name, note, cells, url, is_open=not client.restricted))
        return rows

    def _url(self, route: str, key: object) -> str:
        return reverse(route, args=[self.organization.id, key])


_SOURCES = {
    "role": gettext_lazy("by role"),
    "default": gettext_lazy("by default"),
}
_ONE = {View.MEMBERS: gettext_lazy("Member"), View.TEAMS: gettext_lazy("Team"), View.AGENTS: gettext_lazy("Agent")}


def _column_page(columns: Sequence[Column], asked: str) -> ColumnPage:
    start = min(int(asked), max(0, len(columns) - 1)) if asked.isdecimal() and len(asked) < 6 else 0
    # Whole parts only; a bad offset leads to an existing part.
    start -= start % COLUMNS
    end = min(start + COLUMNS, len(columns))
    return ColumnPage(
        list(columns[start:end]),
        start + 1,
        end,
        len(columns),
        start - COLUMNS if start else None,
        end if end < len(columns) else None,
    )


def _cell(column: Column, access: Sequence[AccessReason]) -> MatrixCell:
    mine = [each for each in access if each.vendor == column.slug]
    reasons = tuple(
        gettext("team %(team)s") % {"team": each.team_name} if each.source == "team" else str(_SOURCES[each.source])
        for each in mine
        if each.source != "direct"
    )
    direct = [each for each in mine if each.source == "direct"]
    return MatrixCell(column, bool(direct), reasons, direct[0].expires_at if direct else None)


def _read_pairs(values: Sequence[str]) -> set[PrincipalVendor]:
    """Parse `<id>:<slug> <slug>,…` as the form sends it. Raises: Invalid."""
    found: set[PrincipalVendor] = set()
    for value in filter(None, ",".join(values).split(",")):
        key, _, slugs = value.partition(":")
        principal = ids.parse_id(key)
        if principal is None:
            raise Invalid(gettext("Something is wrong with this form. Reload the page."))
        found |= {(principal, slug) for slug in slugs.split()}
    if len(found) > ROWS * COLUMNS:
        raise Invalid(gettext("This is more than one page of changes."))
    return found


def _report_changes(
    request: HttpRequest,
    done: ChangeCounts | ClientChangeCounts,
    added: set[PrincipalVendor],
    removed: set[PrincipalVendor],
) -> None:
    unrestricted = done.unrestricted if isinstance(done, ClientChangeCounts) else 0
    if done.gone:
        messages.warning(
            request,
            ngettext(
                "%(count)s of the people you changed had already left.",
                "%(count)s of the people you changed had already left.",
                done.gone,
            )
            % {"count": done.gone},
        )
    if unrestricted:
        messages.warning(
            request,
            ngettext(
                "%(count)s agent can use all vendors. To remove some, choose its vendors on its own page.",
                "%(count)s agents can use all vendors. To remove some, choose their vendors on their own pages.",
                unrestricted,
            )
            % {"count": unrestricted},
        )
    if not done.added and not done.removed:
        if not done.gone and not unrestricted:
            messages.info(request, gettext("Nothing changed."))
        return
    text = gettext("Access updated: %(added)s added, %(removed)s removed.") % {
        "added": done.added,
        "removed": done.removed,
    }
    # Access that is given back has no end, so access with an end is not given back by one button.
    if done.gone or unrestricted or done.ends_lost or len(added) + len(removed) > MAX_UNDONE:
        messages.success(request, text)
    else:
        undo.offer(request, text, {"had": _form_value(added), "grant": _form_value(removed)})


def _form_value(pairs: set[PrincipalVendor]) -> str:
    """The format of `_read_pairs`."""
    return ",".join(f"{principal}:{slug}" for principal, slug in sorted(pairs))

"""Server access as a matrix: members or teams in rows, vendors in columns, and the reasons for access."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Page
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from credentials.selectors import people_vendors
from gateway.catalog import registry
from gateway.lib import ids
from gateway.lib.errors import Invalid
from gateway.web import undo
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from gateway.web.search import search_words
from orgs import selectors
from orgs.models import Membership, Team
from orgs.roles import Role
from orgs.server_access_reasons import AccessReason, effective_server_access_of
from orgs.services.server_access_changes import ChangeCounts, PrincipalVendor, change_member_access, change_team_access

# Members or teams, and vendors, on one page: bounds the form and its queries.
ROWS = 20
COLUMNS = 12
# Cells that one undo button takes back.
MAX_UNDONE = 50


@dataclass(frozen=True, slots=True)
class Column:
    """One vendor. `is_connected`: a credential for people exists; otherwise server access waits for one."""

    slug: str
    name: str
    is_connected: bool


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """Access of one member or team to one vendor. `reasons`: text, without the direct access."""

    vendor: Column
    is_direct: bool
    reasons: tuple[str, ...] = ()

    @property
    def is_allowed(self) -> bool:
        return self.is_direct or bool(self.reasons)


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """`key`: the id in the form."""

    key: UUID
    label: str
    note: str
    cells: list[MatrixCell]

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
    """GET, POST /orgs/:orgId/access[?view=teams&q=&vendor=&page=]. Spec: §4.5 · D33, D57-D59 · ux.md 3"""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = "Server access"
    nav_route = "orgs:server-access"

    def get(self, request: HttpRequest) -> HttpResponse:
        connected = people_vendors(self.organization)
        matching = self._columns(connected)
        columns = _column_page(matching, request.GET.get("from", ""))
        by_team = request.GET.get("view") == "teams"
        page: Page[Any] = page_of(request, self._teams() if by_team else self._members(), size=ROWS)
        rows = self._team_rows(page, columns.shown) if by_team else self._member_rows(page, columns.shown, connected)
        context = {
            "by_team": by_team,
            "asked": self._asked,
            "vendor_asked": search_words(request, "vendor"),
            "columns": columns,
            "page": page,
            "rows": rows,
            "has_vendors": bool(connected) or bool(matching),
            "connected_count": len(connected),
            "here": request.get_full_path(),
            "undo": undo.take(request),
        }
        return self.page("orgs/server_access.html", context)

    def post(self, request: HttpRequest) -> HttpResponse:
        by_team = request.GET.get("view") == "teams"
        # Only the differences from the page as it was shown: other people's changes stay.
        had, wanted = _read_pairs(request.POST.getlist("had")), _read_pairs(request.POST.getlist("grant"))
        change = change_team_access if by_team else change_member_access
        done = change(actor=self.actor, organization=self.organization, added=wanted - had, removed=had - wanted)
        _report_changes(request, done, wanted - had, had - wanted)
        return redirect(request.get_full_path())

    @property
    def _asked(self) -> str:
        return search_words(self.request, "q")

    def _members(self) -> Any:
        return selectors.members(self.organization, matching=self._asked).select_related("organization", "user")

    def _teams(self) -> Any:
        return selectors.teams(self.organization, matching=self._asked)

    def _columns(self, connected: Sequence[str]) -> list[Column]:
        # Connected vendors, and vendors granted before they are connected.
        granted = selectors.server_access(self.organization).order_by().values_list("vendor", flat=True)
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
        through = {each.team_id for reasons in access.values() for each in reasons if each.team_id}
        teams = selectors.teams_by_id(self.organization, through)
        rows = []
        for member in shown:
            cells = [_cell(column, access[member.pk], teams) for column in columns]
            rows.append(MatrixRow(member.user_id, member.user.name, f"{member.user.email}, {member.role}", cells))
        return rows

    def _team_rows(self, teams: Iterable[Any], columns: Sequence[Column]) -> list[MatrixRow]:
        shown = list(teams)
        granted = set(
            selectors.server_access(self.organization).filter(team__in=shown).values_list("team_id", "vendor")
        )
        rows = []
        for team in shown:
            cells = [MatrixCell(column, (team.pk, column.slug) in granted) for column in columns]
            note = "1 member" if team.member_count == 1 else f"{team.member_count} members"
            rows.append(MatrixRow(team.pk, team.name, note, cells))
        return rows


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


def _cell(column: Column, access: Sequence[AccessReason], teams: dict[Any, Team]) -> MatrixCell:
    mine = [each for each in access if each.vendor == column.slug]
    reasons = tuple(
        f"team {teams[each.team_id].name}" if each.team_id in teams else each.source
        for each in mine
        if each.source != "direct"
    )
    return MatrixCell(column, any(each.source == "direct" for each in mine), reasons)


def _read_pairs(values: Sequence[str]) -> set[PrincipalVendor]:
    """Parse `<id>:<slug> <slug>,…` as the form sends it. Raises: Invalid."""
    found: set[PrincipalVendor] = set()
    for value in filter(None, ",".join(values).split(",")):
        key, _, slugs = value.partition(":")
        principal = ids.parse_id(key)
        if principal is None:
            raise Invalid("This form is damaged. Open the page again.")
        found |= {(principal, slug) for slug in slugs.split()}
    if len(found) > ROWS * COLUMNS:
        raise Invalid("This is more than one page of vendor access.")
    return found


def _report_changes(
    request: HttpRequest, done: ChangeCounts, added: set[PrincipalVendor], removed: set[PrincipalVendor]
) -> None:
    if done.gone:
        messages.warning(request, f"{done.gone} of those you changed had left meanwhile.")
    if not done.added and not done.removed:
        if not done.gone:
            messages.info(request, "Nothing was changed.")
        return
    text = f"Saved: {done.added} given, {done.removed} taken back. The next call sees it."
    if done.gone or len(added) + len(removed) > MAX_UNDONE:
        messages.success(request, text)
    else:
        undo.offer(request, text, {"had": _form_value(added), "grant": _form_value(removed)})


def _form_value(pairs: set[PrincipalVendor]) -> str:
    """The format of `_read_pairs`."""
    return ",".join(f"{principal}:{slug}" for principal, slug in sorted(pairs))

"""The pages of one team: what it is and who is in it, and its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy

from audit.selectors import last_calls
from credentials.rejections import summaries_with_rejection
from gateway.catalog import registry
from gateway.lib import ids
from gateway.lib.errors import NotFound
from gateway.web import undo
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate
from gateway.web.navigation import TEAM_TABS
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from gateway.web.search import plain_text, search_words
from orgs import selectors
from orgs.models import Membership, ServerAccess, Team
from orgs.pages.teams import TeamForm
from orgs.roles import Role
from orgs.services.teams import add_team_member, remove_team_member, rename_team

# Names in the list for adding a member; a search narrows it.
MAX_CANDIDATES = 200
MAX_SUGGESTIONS = 3
MAX_TYPED_CHARACTERS = 255  # the maxlength of the HTML field
VENDORS_SHOWN = 8
# The work of one button: None after a change, or the page that shows the fault.
Action = Callable[[], HttpResponse | None]


class TeamThingPage(OrgPage):
    """A page below /orgs/:orgId/teams/:teamId."""

    title = gettext_lazy("Team")
    nav_route = "orgs:teams"
    tabs = TEAM_TABS

    @cached_property
    def team(self) -> Team:
        """Raises: NotFound."""
        return selectors.team(self.organization, str(self.kwargs["team_id"]))

    @property
    def subject(self) -> dict[str, Any]:
        """Arguments that each service for a team takes."""
        return {"actor": self.actor, "organization": self.organization, "team_id": self.team.id}

    @cached_property
    def server_access(self) -> list[ServerAccess]:
        """In force, by vendor."""
        return list(selectors.server_access(self.organization).filter(team=self.team).order_by("vendor"))

    def frame(self) -> dict[str, Any]:
        return {**super().frame(), "page_title": self.team.name, "team": self.team}


class TeamButtonsPage(TeamThingPage):
    """A page of a team with buttons. Each button is a form with an `action` of its own."""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}

    def actions(self) -> dict[str, Action]:
        raise NotImplementedError

    def shown(self, *, errors: dict[str, str], status: int) -> HttpResponse:
        """`errors`: by field."""
        raise NotImplementedError

    def get(self, request: HttpRequest, **path: Any) -> HttpResponse:
        return self.shown(errors={}, status=200)

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        action = self.actions().get(request.POST.get("action", ""))
        if action is None:
            return self.shown(errors={}, status=422)
        return action() or redirect(request.path)

    def fault(self, field: str, text: str) -> HttpResponse:
        return self.shown(errors={field: text}, status=422)


class TeamPage(TeamButtonsPage):
    """GET, POST /orgs/:orgId/teams/:teamId. Spec: §4.7 · D59-D61"""

    tab_route = "orgs:team"

    def actions(self) -> dict[str, Action]:
        return {"add-member": self._add_member, "remove-member": self._remove_member}

    def _add_member(self) -> HttpResponse | None:
        typed = plain_text(self.request.POST.get("member", ""))[:MAX_TYPED_CHARACTERS]
        alike = self._outside(typed) if typed else []
        meant = _called(typed, alike)
        key = ids.parse_id(typed) or (meant[0].user_id if len(meant) == 1 else None)
        if key is None:
            return self.fault("member", _why_nobody(typed, meant, alike))
        try:
            row = add_team_member(**self.subject, user_id=key)
        except NotFound:
            return self.fault("member", gettext("This person is no longer a member of the organization."))
        messages.success(self.request, gettext("%(name)s was added to the team.") % {"name": row.membership.user.name})
        return None

    def _outside(self, typed: str) -> list[Membership]:
        """The members outside the team whose name or address has this in it."""
        outside = selectors.members(self.organization, matching=typed).exclude(team_memberships__team=self.team)
        return list(outside[:MAX_CANDIDATES])

    def _remove_member(self) -> None:
        person = selectors.member(self.organization, self.request.POST.get("member", "")).user
        was_in_it = selectors.team_members(self.team).filter(membership__user=person).exists()
        remove_team_member(**self.subject, user_id=person.id)
        if not was_in_it:
            messages.info(self.request, gettext("%(name)s is not in the team.") % {"name": person.name})
            return
        text = gettext("%(person)s was removed from the team.") % {"person": person.name}
        undo.offer(self.request, text, {"action": "add-member", "member": str(person.id)})

    def shown(self, *, errors: dict[str, str], status: int) -> HttpResponse:
        typed = self.request.POST.get("member", "") if "member" in errors else ""
        context = {
            "errors": errors,
            "typed": typed,
            "undo": undo.take(self.request),
            **self._members(),
            **self._facts(),
        }
        return self.page("orgs/team.html", context, status=status)

    def _members(self) -> dict[str, Any]:
        matching, asked = search_words(self.request, "q"), search_words(self.request, "find")
        outside = selectors.members(self.organization, matching=asked).exclude(team_memberships__team=self.team)
        candidates = list(outside[: MAX_CANDIDATES + 1])
        page = page_of(self.request, selectors.team_members(self.team, matching=matching))
        people = [str(row.membership.user_id) for row in page]
        calls = last_calls(self.organization.id, people)
        return {
            "page": page,
            "matching": matching,
            "rows": [(row, calls.get(str(row.membership.user_id))) for row in page],
            "find": asked,
            "candidates": candidates[:MAX_CANDIDATES],
            "is_long": bool(asked) or len(candidates) > MAX_CANDIDATES,
        }

    def _facts(self) -> dict[str, Any]:
        catalog = registry.load()
        vendors = [(row.vendor, catalog.name_of(row.vendor)) for row in self.server_access]
        held = [row for row in summaries_with_rejection(self.organization) if row.team_id == self.team.id]
        return {
            "vendors": vendors[:VENDORS_SHOWN],
            "more_vendors": max(0, len(vendors) - VENDORS_SHOWN),
            "held": [(row, catalog.name_of(row.vendor)) for row in held],
        }


def _called(typed: str, alike: list[Membership]) -> list[Membership]:
    """Those with exactly this address or name. A name may look like the address of another person: it has no "@"."""
    whole = typed.casefold()
    return [row for row in alike if row.user.email.casefold() == whole] or [
        row for row in alike if row.user.name.casefold() == whole and "@" not in whole
    ]


def _why_nobody(typed: str, meant: list[Membership], alike: list[Membership]) -> str:
    if not typed:
        return gettext("Choose a member.")
    if meant:
        return gettext("Several members match “%(typed)s”. Type the email address.") % {"typed": typed}
    if alike:
        people = ", ".join(f"{row.user.name} ({row.user.email})" for row in alike[:MAX_SUGGESTIONS])
        text = gettext("“%(typed)s” is no one’s full name or email address. Did you mean %(people)s?")
        return text % {"typed": typed, "people": people}
    return gettext("No one outside the team matches “%(asked)s”.") % {"asked": typed}


class TeamSettingsPage(OrgFormPage[TeamForm], TeamThingPage):
    """GET, POST /orgs/:orgId/teams/:teamId/settings. Spec: §4.7 · D61"""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    tab_route = "orgs:team-settings"
    form_class = TeamForm
    template = "orgs/team_settings.html"

    def initial(self) -> dict[str, Any]:
        return {"name": self.team.name}

    def save(self, form: TeamForm) -> HttpResponse:
        team = rename_team(**self.subject, **form.cleaned_data)
        text = gettext("The team is now called %(name)s.") % {"name": team.name}
        return self.done(text, "orgs:team-settings", team.id)

"""Connected apps: a person's own, and for admins those of all members, with the button that revokes one."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, gettext_lazy

from gateway.lib import ids
from gateway.lib.rows import required_row
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from oauth_ext import scopes
from oauth_ext.models import TokenFamily
from oauth_ext.scopes_backend import names_by_scope
from oauth_ext.selectors import connected_apps
from oauth_ext.services.refresh_branches import live_branches
from oauth_ext.services.token_families import revoke_app
from orgs.models import User
from orgs.roles import Role


class AppsPage(OrgPage):
    """GET, POST /orgs/:orgId/apps: one row for each live authorization. Spec: ux.md 3

    `?app=` names one of them, and the page asks before it is revoked.
    """

    gates = {"GET": Gate(Role.MEMBER), "POST": Gate(Role.MEMBER)}
    title = gettext_lazy("Connected apps")
    nav_route = "oauth_pages:apps"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._question(request.GET["app"]) if "app" in request.GET else self._list(request)

    def _question(self, family_id: str) -> HttpResponse:
        """Raises: NotFound, for a member also for another person's app."""
        family = required_row(connected_apps(self.organization, of=self._only_of()).filter(pk=ids.known_id(family_id)))
        branches = live_branches([family])
        return self.page("oauth_ext/app_revoke.html", {"app": _row(family, {}, branches.get(family.pk, 0))})

    def _list(self, request: HttpRequest) -> HttpResponse:
        page = page_of(request, connected_apps(self.organization, of=self._only_of()))
        branches = live_branches(list(page))
        names = names_by_scope({scope for family in page for scope in family.scope.split()})
        context = {
            "page": page,
            "apps": [_row(each, names, branches.get(each.pk, 0)) for each in page],
            "shows_everybody": self._only_of() is None,
        }
        return self.page("oauth_ext/apps.html", context)

    def post(self, request: HttpRequest) -> HttpResponse:
        family_id = ids.known_id(request.POST.get("app", ""))
        # A member gets 404 for another person's app.
        name = revoke_app(actor=self.actor, family_id=family_id, org_id=self.organization.id, only_of=self._only_of())
        return self.done(
            gettext("%(name_or_the_app)s is disconnected. Its tokens no longer work.")
            % {"name_or_the_app": name or gettext("The app")},
            "oauth_pages:apps",
        )

    def _only_of(self) -> User | None:
        return None if self.membership.has_role(Role.ADMIN) else self.actor


def _row(family: TokenFamily, names: Mapping[str, str], branches: int) -> dict[str, object]:
    asked = family.scope.split()
    return {
        "family": family,
        "branches": branches,
        "name": family.client.name or gettext("An app without a name"),
        "unverified": family.client.registered_itself,
        "everything": not scopes.EVERYTHING.isdisjoint(asked),
        "vendors": sorted(names[scope] for scope in asked if scope in names),
    }

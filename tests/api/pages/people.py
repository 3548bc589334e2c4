"""Addresses, forms and the state behind the pages about people, for the tests of those pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.test import Client as Browser

from orgs.models import Invitation, Membership, Organization, ServerAccess, Team, TeamMembership
from orgs.services.invitations import create_invitation
from tests.api.pages.conftest import Site
from tests.factories.cast import make_person


@dataclass(frozen=True)
class Page:
    """One page: the least role, what its address names, and forms that change something when an owner sends them."""

    role: str
    names: tuple[str, ...] = ()
    forms: tuple[dict[str, str], ...] = ()
    query: dict[str, str] = field(default_factory=dict)


PAGES: dict[str, Page] = {
    "members": Page("member"),
    "member-role": Page("owner", ("person",), ({"role": "admin"},)),
    "member-owner": Page("owner", ("person",), ({"typed_name": "Member", "role": "admin"},)),
    "member-remove": Page("admin", ("person",), ({},)),
    "leave": Page("member", (), ({},)),
    "invitations": Page("admin", (), ({"max_uses": "2", "expires_in_days": "3"},)),
    "invitation-revoke": Page("admin", ("invitation",), ({},)),
    "teams": Page("admin", (), ({"name": "New team"},)),
    "team": Page(
        "admin",
        ("team",),
        (
            {"action": "add-member", "member": "{admin}"},
            {"action": "remove-member", "member": "{member}"},
        ),
    ),
    "team-access": Page(
        "admin", ("team",), ({"action": "grant", "vendor": "fake"}, {"action": "revoke", "vendor": "other"})
    ),
    "team-settings": Page("admin", ("team",), ({"name": "Renamed"},)),
    "team-delete": Page("owner", ("team",), ({"typed_name": "Night shift"},)),
    "settings": Page("owner", (), ({"name": "Renamed"},)),
    "default-access": Page("owner", (), ({"to": "all"},), {"to": "all"}),
    "organization-delete": Page("owner", (), ({"typed_name": "Acme"},)),
}
FORMS = [(name, form) for name, page in PAGES.items() for form in page.forms]
RANK = {"member": 0, "admin": 1, "owner": 2}


@dataclass
class People:
    """A site with a second owner, a team (the member in it, the vendor `other` granted) and an invitation."""

    site: Site
    team: Team
    invitation: Invitation

    def path(self, name: str) -> str:
        """The address of one of PAGES."""
        ids = {
            "person": str(self.site.cast.user("member").id),
            "team": str(self.team.id),
            "invitation": str(self.invitation.id),
        }
        return self.site.path(f"orgs:{name}", *(ids[part] for part in PAGES[name].names))

    def foreign_path(self, name: str) -> str:
        """The same rows under the other organization."""
        return self.path(name).replace(str(self.site.cast.org.id), str(self.site.cast.other_org.id))

    def filled(self, form: dict[str, str]) -> dict[str, str]:
        """The form with people's ids in the place of their names."""
        people = {who: str(user.id) for who, user in self.site.cast.people.items()}
        return {key: value.format(**people) for key, value in form.items()}

    def browser(self, who: str) -> Browser:
        """A browser of one of the cast."""
        return self.site.cast.client(who)


def state() -> dict[str, Any]:
    """All that the forms can change, in both organizations."""
    return {
        "organizations": sorted(Organization.objects.values_list("name", "default_server_access")),
        "members": sorted(map(str, Membership.objects.values_list("organization_id", "user_id", "role"))),
        "teams": sorted(map(str, Team.objects.values_list("id", "name"))),
        "in teams": sorted(map(str, TeamMembership.objects.values_list("team_id", "membership_id"))),
        "server_access": sorted(map(str, ServerAccess.objects.values_list("team_id", "membership_id", "vendor"))),
        "invitations": sorted(map(str, Invitation.objects.values_list("id", "revoked_at", "max_uses"))),
    }


def make_people(site: Site) -> People:
    """The rows."""
    cast = site.cast
    team = Team.objects.create(organization=cast.org, name="Night shift")
    member = Membership.objects.get(organization=cast.org, user=cast.user("member"))
    TeamMembership.objects.create(team=team, membership=member)
    ServerAccess.objects.create(organization=cast.org, team=team, vendor="other", granted_by=cast.user("owner"))
    invitation = create_invitation(actor=cast.user("admin"), organization=cast.org)
    Membership.objects.create(organization=cast.org, user=make_person("second_owner"), role="owner")
    return People(site, team, invitation)

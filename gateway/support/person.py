"""The page of one person: organizations, sessions, identities and apps."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse

from gateway.lib import clock
from gateway.lib.rows import required_row
from gateway.support.organization import Shown
from gateway.support.page import SupportPage
from oauth_ext.models import TokenFamily
from orgs.models import Removal, User
from orgs.selectors import management_tokens, memberships
from orgs.services.browser_sessions import sessions_in_force


class PersonPage(SupportPage):
    """GET /admin/support/people/:userId. The log of each of the person's organizations tells that it was read."""

    def get(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        person = required_row(User.objects.filter(pk=user_id))
        own = list(memberships(person))
        self.note_reading(row.organization_id for row in own)
        families = TokenFamily.objects.filter(user=person, expires_at__gt=clock.now())
        context = {
            "person": person,
            "memberships_of_person": own,
            "sessions": sessions_in_force(person),
            "identities": list(person.identities.defer("refresh_sealed").order_by("created_at")),
            "apps": Shown.of(families.select_related("client", "organization").order_by("-last_used_at", "id")),
            "tokens": list(management_tokens(person)),
            "removals": list(
                Removal.objects.filter(user=person).select_related("organization").order_by("-removed_at")[:20]
            ),
        }
        return self.page("support/person.html", person.name, context)

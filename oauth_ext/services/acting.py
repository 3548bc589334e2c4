"""The permission of a service client to act for people. Off by default. docs/decisions/0109"""

from __future__ import annotations

from django.db import transaction

from audit.event_types import EventType
from gateway.lib.rows import required_row
from oauth_ext.models import AccessToken, Client, TokenFamily
from oauth_ext.services.service_clients import record_client_change
from oauth_ext.services.token_families import end_families, end_token_alone
from orgs.locking import lock_for_change
from orgs.models import Organization, User
from orgs.roles import Role


@transaction.atomic
def set_acting(*, actor: User, organization: Organization, client: Client, acts_for_people: bool) -> Client:
    """Without the permission its tokens about people end at once.

    Raises: NotFound for a deleted client; Forbidden for all but owners.
    """
    lock_for_change(organization, actor=actor, role=Role.OWNER)
    # The strong lock waits for requests that store tokens of the client.
    found = required_row(Client.objects.select_for_update().filter(pk=client.pk, organization=organization))
    if found.acts_for_people == acts_for_people:
        return found
    found.acts_for_people = acts_for_people
    found.save(update_fields=["acts_for_people"])
    if not acts_for_people:
        end_families(TokenFamily.objects.filter(client=found, user__isnull=False))
        for token in AccessToken.objects.filter(application=found, user__isnull=False).order_by("pk"):
            end_token_alone(token)
    record_client_change(
        EventType.SERVICE_CLIENT_UPDATED,
        organization.pk,
        actor,
        found,
        acts_for_people=acts_for_people,
        former_acts_for_people=not acts_for_people,
    )
    return found

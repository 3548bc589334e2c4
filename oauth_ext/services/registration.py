"""Registers and deletes public clients."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import transaction

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.coordination import epochs
from gateway.lib import secrets
from gateway.lib.errors import DomainError
from gateway.lib.rows import required_row
from oauth_ext.models import Client, TokenFamily
from oauth_ext.models.client import REGISTERED_CLIENT_ID_PREFIX
from oauth_ext.registration import Registration
from oauth_ext.services.client_cleanup import is_room_for_another
from oauth_ext.services.token_families import lock_families_of

CLIENT_ID_CHARACTERS = 24  # D116


class TooManyClients(DomainError):
    """All self-registered clients in the full table are in use."""

    code, message, status = "too_many_clients", "No more clients can be registered right now. Try again later.", 503


def register_client(registration: Registration) -> Client:
    """Raises: TooManyClients. Spec: D116, D117"""
    if not is_room_for_another():
        raise TooManyClients(f"More than {settings.REGISTERED_CLIENTS} clients are in use.")
    return Client.objects.create(
        client_id=REGISTERED_CLIENT_ID_PREFIX + secrets.random_base62(CLIENT_ID_CHARACTERS),
        client_secret="",
        client_type=Client.CLIENT_PUBLIC,
        authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
        registration_source=Client.RegistrationSource.DCR,
        name=registration.name,
        redirect_uris=" ".join(registration.redirect_uris),
    )


@transaction.atomic
def delete_registered_client(*, actor: Actor, client_pk: uuid.UUID) -> None:
    """Deletes a public client as support staff. Raises: NotFound for a service client or a deleted one."""
    found = required_row(Client.objects.select_for_update().filter(pk=client_pk, organization=None))
    lock_families_of(found)
    families = list(TokenFamily.objects.filter(client=found).select_related("client"))
    # The log of each organization that let the client in names the staff member.
    for org_id in {family.organization_id for family in families}:
        record_admin(
            EventType.OAUTH_APP_REVOKED,
            org_id=org_id,
            actor=actor,
            target=found.as_target(),
            metadata={"client_id": found.client_id, "by": "support staff", "client_deleted": True},
        )
    subjects = {family.subject for family in families}
    found.delete()
    epochs.bump_on_commit(*map(epochs.subject, sorted(subjects)))

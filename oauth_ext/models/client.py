"""OAuth clients: service clients of an organization, and public clients that registered themselves."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from oauth2_provider.models import AbstractApplication

from audit.actor import Actor, Target, label_of
from gateway.lib import clock, ids

SERVICE_CLIENT_ID_PREFIX = "svc_"
REGISTERED_CLIENT_ID_PREFIX = "mcpc_"


class Client(AbstractApplication):
    """A client. With an organization it is a service client (a machine identity), without one a public client.

    Spec: §2 Service client · D70-D73
    """

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)  # type: ignore[assignment]
    organization = models.ForeignKey(
        "orgs.Organization", models.CASCADE, null=True, blank=True, related_name="service_clients"
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    # A service client uses the vendors on its list only, none if it is empty; otherwise all of the organization. D173
    restricted = models.BooleanField(default=False, db_default=False)

    objects: ClassVar[models.Manager[Client]] = models.Manager()

    class Meta(AbstractApplication.Meta):
        verbose_name = "client"
        constraints = [
            models.CheckConstraint(
                condition=Q(organization__isnull=True)
                | Q(expires_at__isnull=False, client_type=AbstractApplication.CLIENT_CONFIDENTIAL),
                name="service_client_is_confidential_and_expires",
            ),
            models.UniqueConstraint(fields=["organization", "id"], name="client_of_organization"),
        ]
        indexes = [models.Index(fields=["registration_source", "created"], name="client_by_source")]

    @property
    def subject(self) -> str:
        """The token subject of this service account. Spec: §2"""
        return service_subject(self.organization_id, self.client_id)

    @property
    def is_service_client(self) -> bool:
        """Whether this is a machine identity of an organization."""
        return self.organization_id is not None

    @property
    def registered_itself(self) -> bool:
        """Whether nobody of ours made it: its name is what it says of itself."""
        return bool(self.registration_source != self.RegistrationSource.MANUAL)

    def is_expired(self) -> bool:
        """Whether its time is over; it stays listed until it is deleted. Spec: D73"""
        return self.expires_at is not None and self.expires_at <= clock.now()

    def is_usable(self, request: Any) -> bool:
        """The library's hook: an expired client is refused like an unknown one. Spec: D73"""
        return not self.is_expired()

    def allows_grant_type(self, *grant_types: str) -> bool:
        """The library's hook: service clients use their own secret, public clients a person's consent."""
        if self.is_service_client:
            own = {self.GRANT_CLIENT_CREDENTIALS, self.GRANT_DEVICE_CODE}
        else:
            own = {self.GRANT_AUTHORIZATION_CODE}
        return bool(own.intersection(grant_types))

    def as_actor(self) -> Actor:
        """The service account as audit rows name it."""
        return Actor(id=self.subject, label=label_of(self.subject, self.name))

    def as_target(self) -> Target:
        """The client as the target of an administrative change."""
        return Target(id=str(self.id), label=self.name)


def service_subject(org_id: uuid.UUID | None, client_id: str) -> str:
    """`svc:<org-id>:<client-id>`. Spec: §2"""
    return f"svc:{org_id}:{client_id}"

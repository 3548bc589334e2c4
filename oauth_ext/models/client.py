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
    """A service client if it has an organization, else a public client. Spec: §2 Service client · D70-D73"""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)  # type: ignore[assignment]
    organization = models.ForeignKey(
        "orgs.Organization", models.CASCADE, null=True, blank=True, related_name="service_clients"
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    # True: only the vendors on its list, none if that is empty. False: every vendor of the organization. D173
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
        return service_subject(self.organization_id, self.client_id)

    @property
    def is_service_client(self) -> bool:
        return self.organization_id is not None

    @property
    def registered_itself(self) -> bool:
        # Such a client chose its own name, unchecked.
        return bool(self.registration_source != self.RegistrationSource.MANUAL)

    def is_expired(self) -> bool:
        """An expired client stays listed until it is deleted. Spec: D73"""
        return self.expires_at is not None and self.expires_at <= clock.now()

    def is_usable(self, request: Any) -> bool:
        """The library's hook. Spec: D73"""
        return not self.is_expired()

    def allows_grant_type(self, *grant_types: str) -> bool:
        """The library's hook."""
        # Service clients use their secret or a device approval, public clients a person's consent.
        if self.is_service_client:
            own = {self.GRANT_CLIENT_CREDENTIALS, self.GRANT_DEVICE_CODE}
        else:
            own = {self.GRANT_AUTHORIZATION_CODE}
        return bool(own.intersection(grant_types))

    def as_actor(self) -> Actor:
        return Actor(id=self.subject, label=label_of(self.subject, self.name))

    def as_target(self) -> Target:
        return Target(id=str(self.id), label=self.name)


def service_subject(org_id: uuid.UUID | None, client_id: str) -> str:
    """`svc:<org-id>:<client-id>`. Spec: §2"""
    return f"svc:{org_id}:{client_id}"

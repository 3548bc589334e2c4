"""OAuth clients: service clients of an organization, and public clients that registered themselves."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from oauth2_provider.models import AbstractApplication

from audit.actor import Actor, Target, label_of
from gateway.lib import clock, ids
from oauth_ext import features

# The grants by which a service client gets a token of a person.
GRANTS_FOR_PEOPLE = (features.JWT_BEARER, features.TOKEN_EXCHANGE)
SERVICE_CLIENT_ID_PREFIX = "svc_"
REGISTERED_CLIENT_ID_PREFIX = "mcpc_"


class ToolMode(models.TextChoices):
    """The kind of tools that a service client may call at any vendor, before its allowlists are asked."""

    ALL = "all"
    # Only tools that the vendor marks read-only; one without a mark counts as writing.
    READ_ONLY = "read_only"


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
    # Counts beside its allowlists, also at vendors that are connected later.
    tool_mode = models.CharField(
        max_length=9, choices=ToolMode.choices, default=ToolMode.ALL, db_default=ToolMode.ALL.value
    )
    # Whether /v1/mcp lists three tools in place of all to it. docs/decisions/0103
    lists_compactly = models.BooleanField(default=False, db_default=False)
    # Whether it may get tokens with which it acts for a person. An owner decides. docs/decisions/0109
    acts_for_people = models.BooleanField(default=False, db_default=False)
    # The hash of the secret before the last rotation; it counts until the end of the overlap. D171
    previous_secret = models.CharField(max_length=255, blank=True, default="", db_default="")
    previous_secret_ends_at = models.DateTimeField(null=True, blank=True)
    secret_rotated_at = models.DateTimeField(null=True, blank=True)
    # None: no person is responsible, also after the person left the organization.
    responsible = models.ForeignKey("orgs.Membership", models.SET_NULL, null=True, blank=True, related_name="+")

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

    @property
    def is_read_only(self) -> bool:
        return self.tool_mode == ToolMode.READ_ONLY

    def is_expired(self) -> bool:
        """An expired client stays listed until it is deleted. Spec: D73"""
        return self.expires_at is not None and self.expires_at <= clock.now()

    def has_previous_secret(self, now: datetime) -> bool:
        """Whether the secret before the last rotation still counts. Spec: D171"""
        return (
            bool(self.previous_secret)
            and self.previous_secret_ends_at is not None
            and now < self.previous_secret_ends_at
        )

    @property
    def previous_secret_counts_until(self) -> datetime | None:
        """None: only the current secret counts."""
        return self.previous_secret_ends_at if self.has_previous_secret(clock.now()) else None

    @property
    def responsible_person(self) -> Any:
        """None: no person is responsible."""
        responsible = self.responsible
        return None if responsible is None or not responsible.user.is_active else responsible.user

    def is_usable(self, request: Any) -> bool:
        """The library's hook. Spec: D73"""
        return not self.is_expired()

    def allows_grant_type(self, *grant_types: str) -> bool:
        """The library's hook."""
        # Service clients use their secret or a device approval, public clients a person's consent.
        if self.is_service_client:
            own = {self.GRANT_CLIENT_CREDENTIALS, self.GRANT_DEVICE_CODE, *GRANTS_FOR_PEOPLE}
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

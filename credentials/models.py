"""Sealed vendor credentials of all four scopes, and the data keys that seal them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.deletion import Collector

from audit.actor import Target
from credentials.credential_scope import CredentialScope
from gateway.lib import clock, ids
from gateway.lib.text import NAME_MAX_CHARACTERS

SCOPE_CHOICES = [(scope.value, scope.value.replace("_", " ").capitalize()) for scope in CredentialScope]


def delete_or_unbind(collector: Collector, field: models.Field[Any, Any], rows: Any, using: str) -> None:
    """`on_delete` of the team: delete its credentials, unbind named keys. Spec: D61"""
    # A team's own credentials end with it; named keys stay, bound to no team.
    models.CASCADE(collector, field, rows.filter(scope=CredentialScope.TEAM), using)
    models.SET_NULL(collector, field, rows.exclude(scope=CredentialScope.TEAM), using)


class OrganizationDataKey(models.Model):
    """One organization's data key, wrapped by a key of CREDENTIAL_KEYS. Spec: D68, D139"""

    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="data_keys")
    version = models.PositiveIntegerField()
    # Id of the key in CREDENTIAL_KEYS that wraps this one.
    key_id = models.CharField(max_length=64)
    # Destroying the row makes everything sealed under it unreadable.
    wrapped_key = models.BinaryField()
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "version"], name="data_key_version_once")]

    def __str__(self) -> str:
        return f"data key {self.version} of organization {self.organization_id}"


class Credential(models.Model):
    """One set of vendor fields at one scope. Spec: §2, §5 (7) · D62-D68"""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="credentials")
    vendor = models.CharField(max_length=40)
    # organization: the default · team: of one team · named_key: named, may be bound to a team ·
    # service_client: of one service client.
    scope = models.CharField(max_length=16, choices=SCOPE_CHOICES)
    team = models.ForeignKey("orgs.Team", delete_or_unbind, null=True, blank=True, related_name="credentials")
    service_client = models.ForeignKey(
        settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.CASCADE, null=True, blank=True, related_name="credentials"
    )
    # Only named keys have a name; the others are identified by their holder.
    name = models.CharField(max_length=NAME_MAX_CHARACTERS, blank=True)
    data_key_version = models.PositiveIntegerField()
    # The fields exist only in here.
    sealed = models.BinaryField()
    # Grows with every replacement: pooled sessions and cached results of the old fields must not serve the new ones.
    revision = models.PositiveIntegerField(default=1)
    # When the vendor accepted these fields; null if it did not confirm them.
    validated_at = models.DateTimeField(null=True, blank=True)
    # The vendor's answer to the last check of these fields.
    checked_at = models.DateTimeField(null=True, blank=True)
    check_verdict = models.CharField(max_length=16, blank=True, default="", db_default="")
    check_detail = models.CharField(max_length=200, blank=True, default="", db_default="")
    # How many tools the vendor listed then; null if it did not say.
    check_tools = models.PositiveIntegerField(null=True, blank=True)
    # When and by whom these fields were stored; null in rows of earlier releases.
    stored_at = models.DateTimeField(null=True, blank=True)
    stored_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    # The last call with it, give or take a few minutes.
    last_used_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=clock.now)
    updated_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(scope="organization", team__isnull=True, service_client__isnull=True, name="")
                | Q(scope="team", team__isnull=False, service_client__isnull=True, name="")
                | (Q(scope="named_key", service_client__isnull=True) & ~Q(name=""))
                | Q(scope="service_client", team__isnull=True, service_client__isnull=False, name=""),
                name="credential_scope_shape",
            ),
            models.UniqueConstraint(
                fields=["organization", "vendor"],
                condition=Q(scope="organization"),
                name="organization_credential_once",
            ),
            models.UniqueConstraint(
                fields=["organization", "vendor", "team"], condition=Q(scope="team"), name="team_credential_once"
            ),
            models.UniqueConstraint(
                fields=["organization", "vendor", "name"],
                condition=Q(scope="named_key"),
                name="credential_key_name_once",
            ),
            models.UniqueConstraint(
                fields=["organization", "vendor", "team"],
                condition=Q(scope="named_key", team__isnull=False),
                name="credential_key_once_per_team",
            ),
            models.UniqueConstraint(
                fields=["organization", "vendor", "service_client"],
                condition=Q(scope="service_client"),
                name="service_client_credential_once",
            ),
        ]

    def as_target(self) -> Target:
        label = f"{self.vendor} ({self.scope.replace('_', ' ')}{f' {self.name}' if self.name else ''})"
        return Target(id=str(self.id), label=label)

    def __str__(self) -> str:
        return self.as_target().label

"""Sealed vendor credentials and connections of all scopes, and the data keys that seal them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.deletion import Collector

from audit.actor import Target
from credentials.credential_scope import TYPED_SCOPES, CredentialScope
from gateway.lib import clock, ids
from gateway.lib.text import NAME_MAX_CHARACTERS

SCOPE_CHOICES = [(scope.value, scope.value.replace("_", " ").capitalize()) for scope in TYPED_SCOPES]


# Columns of VendorQuestionRules: the names of MCP's client capabilities.
QUESTION_KINDS = ("elicitation", "sampling", "roots")


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


class VendorOAuthClient(models.Model):
    """The organization's registration at one authorization server of a vendor. Spec: contract §8"""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="vendor_oauth_clients")
    vendor = models.CharField(max_length=40)
    # A server's credentials are never sent to another one.
    issuer = models.CharField(max_length=2000)
    client_id = models.CharField(max_length=2000)
    # How it proves itself at the token endpoint: a name of RFC 7591.
    auth_method = models.CharField(max_length=40)
    data_key_version = models.PositiveIntegerField()
    # The secret exists only in here; a public client has none.
    sealed = models.BinaryField()
    # After it the client is registered anew; null: the secret has no end.
    secret_expires_at = models.DateTimeField(null=True, blank=True)
    registered_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "vendor", "issuer"], name="vendor_oauth_client_once")
        ]

    def __str__(self) -> str:
        return f"client at {self.vendor}"


class VendorConnection(models.Model):
    """The result of a sign-in at a vendor: tokens, their holder, and how they are renewed. Spec: contract §8 · D160

    A connection of the organization has the id of its `Credential`, which says that the vendor is connected and ends
    together with it.
    """

    class Status(models.TextChoices):
        CONNECTED = "connected"
        # The vendor refuses to renew the tokens.
        NEEDS_SIGN_IN = "needs_sign_in"

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="vendor_connections")
    vendor = models.CharField(max_length=40)
    # Of the organization's connection.
    credential = models.OneToOneField(
        Credential, models.CASCADE, null=True, blank=True, related_name="vendor_connection"
    )
    # Of a person's own; it ends with the membership.
    membership = models.ForeignKey(
        "orgs.Membership", models.CASCADE, null=True, blank=True, related_name="vendor_connections"
    )
    issuer = models.CharField(max_length=2000)
    resource = models.CharField(max_length=2000)
    token_endpoint = models.CharField(max_length=2000)
    revocation_endpoint = models.CharField(max_length=2000, blank=True)
    client_id = models.CharField(max_length=2000)
    auth_method = models.CharField(max_length=40)
    # Separated by spaces.
    scopes = models.TextField(blank=True)
    # Those that the last refused call needed; the next sign-in asks for them, too.
    wanted_scopes = models.TextField(blank=True, default="", db_default="")
    # At the vendor, if it tells.
    account = models.CharField(max_length=200, blank=True)
    data_key_version = models.PositiveIntegerField()
    # The access token exists only in here.
    sealed = models.BinaryField()
    refresh_data_key_version = models.PositiveIntegerField(null=True, blank=True)
    # The refresh token exists only in here; null without one.
    sealed_refresh = models.BinaryField(null=True, blank=True)
    # Grows with every renewal.
    revision = models.PositiveIntegerField(default=1)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.CONNECTED)
    # Why the last renewal failed, in one sentence.
    problem = models.CharField(max_length=200, blank=True)
    # Null: the vendor did not say.
    expires_at = models.DateTimeField(null=True, blank=True)
    # When the next renewal is due; null: never.
    refresh_at = models.DateTimeField(null=True, blank=True)
    # The process that renews at the moment, and until when it may.
    lease_id = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    connected_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    connected_at = models.DateTimeField(default=clock.now)
    refreshed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(credential__isnull=False, membership__isnull=True)
                | Q(credential__isnull=True, membership__isnull=False),
                name="vendor_connection_level",
            ),
            models.UniqueConstraint(
                fields=["vendor", "membership"],
                condition=Q(membership__isnull=False),
                name="vendor_connection_once_per_person",
            ),
        ]

    @property
    def scope(self) -> CredentialScope:
        return CredentialScope.ORGANIZATION if self.membership_id is None else CredentialScope.PERSON

    @property
    def scope_list(self) -> list[str]:
        return self.scopes.split()

    @property
    def wanted_scope_list(self) -> list[str]:
        """Those that a call needed and the connection lacks."""
        return [each for each in self.wanted_scopes.split() if each not in self.scope_list]

    @property
    def state(self) -> str:
        """connected; expired: a new sign-in is needed; error: the last renewal failed. Contract: 8"""
        if self.status == self.Status.NEEDS_SIGN_IN:
            return "expired"
        return "error" if self.problem else "connected"

    def as_target(self) -> Target:
        return Target(id=str(self.id), label=f"{self.vendor} ({self.scope})")

    def __str__(self) -> str:
        return self.as_target().label


class VendorQuestionRules(models.Model):
    """The kinds of questions that a vendor may ask an organization's callers in the middle of a call.

    Without a row: the defaults of the columns. docs/decisions/0118
    """

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="vendor_question_rules")
    vendor = models.CharField(max_length=40)
    # Forms and pages for a person; use of the caller's model; the list of the caller's folders.
    elicitation = models.BooleanField(default=True)
    sampling = models.BooleanField(default=False)
    roots = models.BooleanField(default=False)
    changed_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "vendor"], name="vendor_question_rules_once")]

    @property
    def allowed(self) -> frozenset[str]:
        return frozenset(kind for kind in QUESTION_KINDS if getattr(self, kind))

    def as_target(self) -> Target:
        return Target(id=self.vendor, label=self.vendor)

    def __str__(self) -> str:
        return self.as_target().label


class VendorSignInRules(models.Model):
    """An organization's rules for sign-ins at a vendor. Without a row: all that the catalog offers. Contract: 8"""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="vendor_sign_in_rules")
    vendor = models.CharField(max_length=40)
    people_may_connect = models.BooleanField(default=True)
    # The only ones to ask for, separated by spaces; empty: those that the vendor names.
    scopes = models.TextField(blank=True)
    # The authorization server of the first connection. People are sent to no other one until an admin agrees.
    issuer = models.CharField(max_length=2000, blank=True)
    changed_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "vendor"], name="vendor_sign_in_rules_once")]

    @property
    def scope_list(self) -> list[str]:
        return self.scopes.split()

    def as_target(self) -> Target:
        return Target(id=self.vendor, label=self.vendor)

    def __str__(self) -> str:
        return f"sign-ins at {self.vendor}"


class VendorSignIn(models.Model):
    """A sign-in at a vendor that was begun and waits for the callback. Single use. Spec: contract §8"""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="vendor_sign_ins")
    membership = models.ForeignKey("orgs.Membership", models.CASCADE, related_name="+")
    vendor = models.CharField(max_length=40)
    # Whether the connection will be the organization's or the person's own.
    level = models.CharField(max_length=16)
    state_sha256 = models.BinaryField(unique=True)
    # Only the browser that began may finish.
    session_sha256 = models.BinaryField()
    data_key_version = models.PositiveIntegerField()
    # Issuer, endpoints, client and code verifier.
    sealed = models.BinaryField()
    # The page to return to.
    back = models.CharField(max_length=500, blank=True)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"sign-in at {self.vendor}"


class VendorRevocation(models.Model):
    """Tokens of a connection that has ended, until their vendor knows it. It outlives organization and person."""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    vendor = models.CharField(max_length=40)
    # Id of the key in CREDENTIAL_KEYS that seals the row: the organization's data keys may be gone.
    key_id = models.CharField(max_length=64)
    # Endpoint, client and tokens.
    sealed = models.BinaryField()
    tries = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(default=clock.now, db_index=True)
    created_at = models.DateTimeField(default=clock.now)

    def __str__(self) -> str:
        return f"revocation at {self.vendor}"

"""Identity providers that an organization trusts to vouch for its members. docs/decisions/0109"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from audit.actor import Target
from gateway.lib import clock, ids
from orgs.models.mail_domain import DOMAIN_CHARACTERS

ISSUER_CHARACTERS = 255
JWKS_URL_CHARACTERS = 500


class TrustedIssuer(models.Model):
    """Deleting the row ends the tokens that were given for assertions of the issuer."""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="trusted_issuers")
    issuer = models.CharField(max_length=ISSUER_CHARACTERS)
    # Empty: the address in the issuer's discovery document.
    jwks_url = models.CharField(max_length=JWKS_URL_CHARACTERS, blank=True)
    # Of an issuer with several tenants: the claim `tenant` of each assertion. Empty: assertions have none.
    tenant = models.CharField(max_length=ISSUER_CHARACTERS, blank=True)
    algorithms = models.JSONField(default=list)
    # The service clients that may present assertions, by client id; empty: each one that may act for people.
    client_ids = models.JSONField(default=list, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=clock.now)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "issuer"], name="trusted_issuer_once")]

    def as_target(self) -> Target:
        return Target(id=str(self.pk), label=self.issuer)

    def __str__(self) -> str:
        return f"{self.issuer} for {self.organization_id}"


class LinkedSubject(models.Model):
    """A subject of a trusted issuer, bound to a member at its first assertion: one subject, one member."""

    issuer = models.ForeignKey(TrustedIssuer, models.CASCADE, related_name="subjects")
    sub = models.CharField(max_length=ISSUER_CHARACTERS)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    # The mail domain of the organization by which the person was recognized. Empty: the person had signed in at the
    # issuer. The binding counts while the domain is the organization's.
    domain = models.CharField(max_length=DOMAIN_CHARACTERS, blank=True, default="", db_default="")
    linked_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["issuer", "sub"], name="subject_of_an_issuer_once"),
            # Another subject with the member's address is another person, to whom the provider gave the address anew.
            models.UniqueConstraint(fields=["issuer", "user"], name="member_of_an_issuer_once"),
        ]

    def __str__(self) -> str:
        return f"{self.sub} at {self.issuer_id}"


class UsedAssertion(models.Model):
    """An assertion that gave a token; it gives no other one. It outlives the trust in its issuer."""

    # Of organization, issuer and `jti`.
    assertion_sha256 = models.BinaryField(max_length=32, unique=True)
    # Indexed: the row is deleted once the assertion has expired.
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return str(self.pk)

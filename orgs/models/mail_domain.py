"""Mail domains that organizations claim, and people who ask to join by theirs. docs/decisions/0097"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from audit.actor import Target
from gateway.lib import clock, ids

DOMAIN_CHARACTERS = 253


class MailDomain(models.Model):
    """A claim waits until support staff has confirmed it. One organization has a domain."""

    class Offer(models.TextChoices):
        """The offer to people with a verified address of the domain."""

        ASK = "ask", "Ask to join"
        JOIN = "join", "Join as a member"

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="mail_domains")
    domain = models.CharField(max_length=DOMAIN_CHARACTERS)
    offer = models.CharField(max_length=4, choices=Offer.choices, default=Offer.ASK)
    # The owner whose verified address is of the domain.
    claimed_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=clock.now)
    confirmed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["domain"], condition=Q(confirmed_at__isnull=False), name="mail_domain_of_one_organization"
            ),
            models.UniqueConstraint(fields=["organization", "domain"], name="mail_domain_claimed_once"),
        ]

    def as_target(self) -> Target:
        return Target(id=str(self.pk), label=self.domain)

    def __str__(self) -> str:
        return f"{self.domain} of {self.organization_id}"


class JoinRequest(models.Model):
    """A person who has a domain's address asks to join. Declined ones stay: the person does not ask again."""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=clock.now)
    declined_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "user"], name="join_request_once_per_person")]

    def __str__(self) -> str:
        return f"{self.user_id} to {self.organization_id}"

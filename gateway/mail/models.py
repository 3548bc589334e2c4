"""The outbox of e-mail, and who wants no more of a kind."""

from __future__ import annotations

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q

from gateway.lib import clock, ids

KIND_CHARACTERS = 40
REASON_CHARACTERS = 300


class MailState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    SENT = "sent", "Sent"
    # The mail server refused this address or this message for good.
    REFUSED = "refused", "Refused"
    # The mail server could not be used for three days.
    FAILED = "failed", "Failed"
    UNWANTED = "unwanted", "Unsubscribed"
    # Its subject is over, such as an invitation that was revoked.
    OBSOLETE = "obsolete", "No longer needed"


class OutgoingMail(models.Model):
    """One message to one address, written in the transaction of what it tells. docs/decisions/0097

    It holds no text and no secret: both are made when it is sent.
    """

    # The Message-ID is made of it: a message that is sent again is recognised.
    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, null=True, related_name="+", db_index=False)
    kind = models.CharField(max_length=KIND_CHARACTERS)
    # Security notices go first among those of one organization.
    is_urgent = models.BooleanField(default=False)
    address = models.EmailField(max_length=254)
    # Empty: the language of the deployment.
    language = models.CharField(max_length=8, blank=True)
    facts = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    # The thing that it is about, such as an invitation.
    about = models.UUIDField(null=True)
    state = models.CharField(max_length=10, choices=MailState.choices, default=MailState.WAITING)
    # The mail server's words, or ours.
    reason = models.CharField(max_length=REASON_CHARACTERS, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    # The sender that has it now. It is free again at `next_attempt_at`.
    claim = models.UUIDField(null=True)
    next_attempt_at = models.DateTimeField(default=clock.now)
    created_at = models.DateTimeField(default=clock.now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "outgoing mail"
        indexes = [
            models.Index(fields=["next_attempt_at"], condition=Q(state="waiting"), name="mail_waiting"),
            models.Index(fields=["organization", "-created_at"], name="mail_of_organization"),
            models.Index(fields=["about"], name="mail_about"),
            models.Index(fields=["created_at"], name="mail_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class OptOut(models.Model):
    """An address that gets no more messages of a kind. The address itself is not stored."""

    address_sha256 = models.BinaryField(max_length=32)
    kind = models.CharField(max_length=KIND_CHARACTERS)
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["address_sha256", "kind"], name="opt_out_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

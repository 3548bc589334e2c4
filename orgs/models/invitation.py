"""Links that let people join an organization."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import ClassVar
from uuid import UUID

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import F, Q, Value

from audit.actor import ANYONE, INVITATION_FOR, Target
from gateway.lib import clock, ids
from orgs.roles import Role


class InvitationState(StrEnum):
    """Spec: D51"""

    PENDING = "pending"
    ACCEPTED = "accepted"
    EXPIRED = "expired"
    REVOKED = "revoked"


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def take_one_use(self, invitation_id: UUID, now: datetime) -> bool:
        """Consume one use; False if none is left. Spec: D55"""
        # The WHERE clause is the lock: of two takers of the last use, one wins.
        usable = self.filter(pk=invitation_id, revoked_at=None, expires_at__gt=now, use_count__lt=F("max_uses"))
        return usable.update(use_count=F("use_count") + 1) == 1

    def pending(self, now: datetime) -> models.QuerySet[Invitation]:
        """Invitations that can still be accepted, newest first."""
        usable = self.filter(revoked_at=None, expires_at__gt=now, use_count__lt=F("max_uses"))
        return usable.order_by("-created_at", "id")


class Invitation(models.Model):
    """A link for up to `max_uses` people, or for one e-mail address. Spec: §2, §4.4 · D48-D55"""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey("orgs.Organization", models.CASCADE, related_name="invitations")
    # Links are looked up by hash.
    token_sha256 = models.BinaryField(max_length=32, unique=True)
    # Sealed: admins can copy the link again, and a stolen table opens nothing.
    token_sealed = models.BinaryField()
    token_key_id = models.CharField(max_length=64)
    # Empty: anyone with the link may join.
    email = models.EmailField(max_length=254, blank=True)
    max_uses = models.PositiveSmallIntegerField(default=1)
    use_count = models.PositiveSmallIntegerField(default=0)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=clock.now)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    # Given at joining, as far as the person who invited may still give it. Database defaults: processes of an earlier
    # release still insert rows while this one starts.
    role = models.CharField(max_length=8, default=Role.MEMBER.value, db_default=Role.MEMBER.value)
    team_ids = models.JSONField(default=list, db_default=Value([], models.JSONField()), encoder=DjangoJSONEncoder)
    vendors = models.JSONField(default=list, db_default=Value([], models.JSONField()))
    # The last message with the link, and the one reminder.
    mailed_at = models.DateTimeField(null=True, blank=True)
    reminded_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[InvitationQuerySet] = InvitationQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(use_count__lte=F("max_uses")), name="invitation_uses_within_max"),
            models.CheckConstraint(condition=Q(max_uses__gte=1), name="invitation_has_a_use"),
        ]
        indexes = [models.Index(fields=["organization", "-created_at"], name="invitation_by_organization")]

    def state(self, now: datetime) -> InvitationState:
        if self.revoked_at is not None:
            return InvitationState.REVOKED
        if self.use_count >= self.max_uses:
            return InvitationState.ACCEPTED
        return InvitationState.EXPIRED if self.expires_at <= now else InvitationState.PENDING

    def as_target(self) -> Target:
        # The token never gets into audit rows.
        return Target(id=str(self.id), label=f"{INVITATION_FOR}{self.email or ANYONE}")

    def __str__(self) -> str:
        return self.as_target().label

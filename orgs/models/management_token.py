from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q

from audit.actor import Target
from gateway.lib import clock, ids
from orgs.roles import TOKEN_SCOPE_CHOICES, TokenScope

NAME_CHARACTERS = 60


class ManagementToken(models.Model):
    """A person's bearer for /api in one organization. Spec: D168 · docs/decisions/0099"""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    # The end of the membership ends its tokens. The role is the membership's, at each request.
    membership = models.ForeignKey("orgs.Membership", models.CASCADE, related_name="management_tokens")
    name = models.CharField(max_length=NAME_CHARACTERS)
    scope = models.CharField(max_length=8, choices=TOKEN_SCOPE_CHOICES)
    prefix = models.CharField(max_length=32, unique=True)
    # The secret half itself is never stored.
    secret_sha256 = models.BinaryField(max_length=32)
    created_at = models.DateTimeField(default=clock.now)
    expires_at = models.DateTimeField(db_index=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(scope__in=[scope.value for scope in TokenScope]), name="token_scope"),
        ]

    @property
    def may_change(self) -> bool:
        return self.scope == TokenScope.ADMIN

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at <= now

    def as_target(self) -> Target:
        return Target(id=str(self.id), label=f"{self.name} ({self.prefix})")

    def __str__(self) -> str:
        return self.prefix

"""The outbox: epoch bumps that were committed and that Redis has not taken yet."""

from __future__ import annotations

from django.db import models

from gateway.lib import clock


class PendingBump(models.Model):
    """One epoch to bump. The row is written with the change and deleted once the store has taken the bump."""

    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        """Relayed in the order of the ids."""

        ordering = ("id",)

    def __str__(self) -> str:
        return self.name

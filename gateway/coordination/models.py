from __future__ import annotations

from django.db import models

from gateway.lib import clock


class PendingBump(models.Model):
    """An epoch to bump: written in the transaction of the change, deleted once Redis has taken the bump."""

    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.name

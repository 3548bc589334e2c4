from __future__ import annotations

from django.db import models

from audit.actor import Target
from gateway.lib import clock, ids
from gateway.lib.text import NAME_MAX_CHARACTERS


class Organization(models.Model):
    """The tenant: every tenant row refers to one. Spec: §2 · D31, D32"""

    class DefaultServerAccess(models.TextChoices):
        """The vendors that a member without server access may use."""

        NONE = "none", "None: members need a grant for each vendor"
        ALL = "all", "All: members may use every connected vendor"

        @property
        def gives_access(self) -> bool:
            return self is type(self).ALL

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    name = models.CharField(max_length=NAME_MAX_CHARACTERS)
    # Default: least privilege. Spec: D32
    default_server_access = models.CharField(
        max_length=8, choices=DefaultServerAccess.choices, default=DefaultServerAccess.NONE
    )
    created_at = models.DateTimeField(default=clock.now)

    @property
    def gives_access_by_default(self) -> bool:
        return self.DefaultServerAccess(self.default_server_access).gives_access

    def as_target(self) -> Target:
        return Target(id=str(self.id), label=self.name)

    def __str__(self) -> str:
        return self.name

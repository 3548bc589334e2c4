"""What support staff may do beyond looking: the services' own actions, which write down who did them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from audit.actor import Actor
from gateway.lib.errors import DomainError, NotFound
from gateway.lib.read_only_admin import ReadOnlyAdmin
from orgs.models import User

Row = TypeVar("Row")


class ActingAdmin(ReadOnlyAdmin):
    """A list whose rows can be ended, by staff who hold the permission to delete such rows.

    The delete button itself stays away: it would end rows behind the services' backs.
    """

    actions: Any = ()

    def has_staff_delete_permission(self, request: HttpRequest) -> bool:
        """What actions name as `permissions=["staff_delete"]`."""
        options = self.opts
        return bool(request.user.has_perm(f"{options.app_label}.delete_{options.model_name}"))

    def act(self, request: HttpRequest, chosen: Iterable[Row], service: Callable[[Row], object], what: str) -> None:
        """Ask the service for one row after the other, each a transaction of its own, and say what became of them."""
        done = gone = 0
        for row in chosen:
            try:
                service(row)
                done += 1
            except NotFound:
                gone += 1
            except DomainError as refusal:
                messages.error(request, f"{row}: {refusal.message}")
        if done:
            messages.success(request, f"{done} {what}")
        if gone:
            messages.warning(request, f"{gone} had ended already.")


def staff_actor(request: HttpRequest) -> Actor:
    """Who acts, as the organization's log names somebody whom its people do not know.

    Raises: PermissionDenied for anybody who is not staff; the admin lets nobody else in.
    """
    if not isinstance(request.user, User) or not request.user.is_staff:
        raise PermissionDenied
    return Actor(id=str(request.user.pk), label=f"{request.user.label} (support staff)")

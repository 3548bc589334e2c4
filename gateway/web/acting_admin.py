"""Django admin for support staff who may act: each action calls a domain service, which writes the audit log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.translation import gettext

from audit.actor import Actor
from gateway.lib.errors import DomainError, NotFound
from gateway.lib.read_only_admin import ReadOnlyAdmin
from orgs.models import User

Row = TypeVar("Row")


class ActingAdmin(ReadOnlyAdmin):
    """A list whose actions end rows, for staff who hold the model's delete permission."""

    # Django's own delete button stays off: it would skip the service's checks and audit entries.
    actions: Any = ()

    def has_staff_delete_permission(self, request: HttpRequest) -> bool:
        """The check behind `permissions=["staff_delete"]` of an action."""
        options = self.opts
        return bool(request.user.has_perm(f"{options.app_label}.delete_{options.model_name}"))

    def act(
        self, request: HttpRequest, chosen: Iterable[Row], service: Callable[[Actor, Row], object], what: str
    ) -> None:
        actor = _staff_actor(request)
        done = gone = 0
        for row in chosen:
            try:
                service(actor, row)
                done += 1
            except NotFound:
                gone += 1
            except DomainError as refusal:
                messages.error(request, f"{row}: {refusal.message}")
        if done:
            messages.success(request, f"{done} {what}")
        if gone:
            messages.warning(request, gettext("%(gone)s had already ended.") % {"gone": gone})


def _staff_actor(request: HttpRequest) -> Actor:
    """The actor of an audit entry. Raises: PermissionDenied for a user who is not staff."""
    if not isinstance(request.user, User) or not request.user.is_staff:
        raise PermissionDenied
    # Members do not know the person, so the label says support staff.
    return Actor(id=str(request.user.pk), label=f"{request.user.label} (support staff)")

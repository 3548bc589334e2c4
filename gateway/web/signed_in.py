"""The signed-in user of a request."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from orgs.models import User


def signed_in(request: HttpRequest) -> User:
    """Raises: PermissionDenied for an anonymous request: a page without its own sign-in check stays closed."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user

"""The person behind a request that passed LoginRequiredMixin."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from orgs.models import User


def signed_in(request: HttpRequest) -> User:
    """The person.

    Raises: PermissionDenied for anybody else: a page that forgot its sign-in check stays closed.
    """
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user

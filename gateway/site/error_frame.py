"""The organization's frame around an error page, for its members."""

from __future__ import annotations

import re
from typing import Any

import structlog
from django.db import Error as DatabaseError
from django.http import HttpRequest

from gateway.lib.ids import parse_id
from gateway.web.navigation import navigation
from gateway.web.signed_in import is_by_htmx
from orgs.models import User
from orgs.selectors import membership_row, memberships

log = structlog.get_logger(__name__)
_OF_ORGANIZATION = re.compile(r"/orgs/([0-9a-f-]{36})(?:/|$)")
TOO_MANY_REQUESTS = 429


def frame_of(request: HttpRequest, status: int) -> dict[str, Any]:
    """The context of the frame; empty for other people and other addresses, and where the frame could fail too."""
    found = _OF_ORGANIZATION.match(request.path_info)
    # A refused burst costs no queries, and a fault on our side may be the database's.
    if found is None or status >= 500 or status == TOO_MANY_REQUESTS or is_by_htmx(request):
        return {}
    try:
        return _frame(request, found[1])
    except DatabaseError as fault:
        log.error("an error page has no frame", fault=type(fault).__name__)
        return {}


def _frame(request: HttpRequest, org_id: str) -> dict[str, Any]:
    user, organization_id = getattr(request, "user", None), parse_id(org_id)
    if not isinstance(user, User) or organization_id is None:
        return {}
    membership = membership_row(user.id, organization_id)
    if membership is None:
        return {}
    return {
        "memberships": list(memberships(user)),
        "organization": membership.organization,
        "membership": membership,
        "nav": navigation(membership, current_route=""),
        "is_off_menu": True,
    }

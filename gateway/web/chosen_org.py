"""Views with the organization in `org_id` instead of the path. Spec: D35, D149"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.http import HttpRequest
from rest_framework import serializers

from gateway.lib import strict_json
from gateway.web.api_view import OrgView
from orgs.models import User
from orgs.selectors import memberships

MEMBER = "org_id"
_NO_ORGANIZATION = ""  # matches no organization: NotFound, as for an unknown id


class ChosenOrgIn(serializers.Serializer[Any]):
    org_id = serializers.CharField(
        required=False, help_text="The organization. By default, the one the caller joined first."
    )


class ChosenOrgView(OrgView):
    """A view outside /api/orgs/:orgId. Methods with a body read `org_id` from it, others from the query."""

    org_argument: ClassVar[str | None] = None

    def organization_id(self, http: HttpRequest, user: User, path: Mapping[str, Any]) -> str:
        named = _named_in_body(http) if self.takes_body(http.method or "") else _named_in_query(http)
        if named is None:
            if self.token is not None:
                return str(self.token.membership.organization_id)
            # Without an organization, `_NO_ORGANIZATION` gives the same 404 as an unknown, foreign or malformed id.
            primary = memberships(user).first()
            return _NO_ORGANIZATION if primary is None else str(primary.organization_id)
        return named

    @classmethod
    def takes_body(cls, method: str) -> bool:
        operation = cls.operations.get(method)
        return operation is not None and operation.body is not None


def _named_in_query(http: HttpRequest) -> str | None:
    values = http.GET.getlist(MEMBER)
    if not values:
        return None
    return values[0] if len(values) == 1 else _NO_ORGANIZATION  # repeated: two readers could take different values


def _named_in_body(http: HttpRequest) -> str | None:
    try:
        body = strict_json.loads(http.body)
    # Body validation refuses an unreadable body later; here it names no organization.
    except strict_json.StrictJSONError:
        return None
    if not isinstance(body, dict) or MEMBER not in body:
        return None
    named = body[MEMBER]
    return named if isinstance(named, str) else _NO_ORGANIZATION

"""Reasons that close the forms that invite: no plan, or as many invitations in an hour as a person may make."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from gateway.coordination import backend
from gateway.web import rate


def window_facts(request: HttpRequest, *, needs_plan: bool) -> dict[str, Any]:
    """For `orgs/_invitations_closed.html` and the button."""
    window = backend.current().peek(settings.INVITATION_CREATE, rate.key_of(request))
    return {
        "window": window,
        "next_in_minutes": -(-window.retry_after_s // 60),
        "is_closed": needs_plan or not window.allowed,
    }

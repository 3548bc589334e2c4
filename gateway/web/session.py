"""Who calls the API: the person of the web session, and nobody by any other means. Contract: 3"""

from __future__ import annotations

from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request

from gateway.lib.errors import DomainError


class Unauthenticated(DomainError):
    """There is no session, or it has ended. Spec: D4"""

    code, message, status = "unauthenticated", "Sign in first.", 401


class SessionOnly(SessionAuthentication):
    """A bearer opens nothing here. The form token is replaced by gateway.middleware.cross_site. Spec: §5 (1) · D24"""

    def enforce_csrf(self, request: Request) -> None:  # type: ignore[override]
        """Refused earlier, by where the request came from."""

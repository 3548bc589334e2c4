"""API authentication by the web session. Contract: 3"""

from __future__ import annotations

from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request

from gateway.lib.errors import DomainError


class Unauthenticated(DomainError):
    # Spec: D4
    code, message, status = "unauthenticated", "Sign in first, or send a management token.", 401
    # The WWW-Authenticate header.
    challenge = 'Session realm="gateway", Bearer realm="gateway"'


class SessionOnly(SessionAuthentication):
    """Session authentication; bearers other than management tokens are ignored. Spec: §5 (1) · D24"""

    def enforce_csrf(self, request: Request) -> None:  # type: ignore[override]
        """No check here: gateway.middleware.cross_site has refused cross-site requests by their origin."""

"""The JWT bearer grant: an identity assertion (ID-JAG) of the organization's own provider gives an access token.

Spec: RFC 7523 2.1 · draft-ietf-oauth-identity-assertion-authz-grant 4.4 · docs/decisions/0109
"""

from __future__ import annotations

from typing import Any

from oauth_ext.grants.for_people import GrantForPeople, grant_assertion, proven_assertion
from oauth_ext.grants.token_request import required


class JwtBearer(GrantForPeople):
    """Each assertion gives one token; the next token needs another one."""

    def prepare(self, request: Any) -> None:
        request.proven = proven_assertion(request.client, required(request, "assertion"))

    def validate_token_request(self, request: Any) -> None:
        grant_assertion(request, *request.proven)

"""A service client uses its own secret. Spec: §4.2 · RFC 6749 4.4"""

from __future__ import annotations

from typing import Any

from oauthlib.oauth2 import ClientCredentialsGrant

from oauth_ext.audiences import audiences
from oauth_ext.grants.token_request import asked_resources, targeted


class ClientCredentials(ClientCredentialsGrant):
    """The token's subject is the service account. No refresh token: the secret can be used again."""

    def validate_token_request(self, request: Any) -> None:
        """Authenticate the client, check grant and scopes (the library), then say whose and for whom the token is."""
        super().validate_token_request(request)
        request.user = None
        request.organization_id = request.client.organization_id
        request.resource = targeted(lambda: audiences(asked_resources(request)))

"""The client credentials grant. Spec: §4.2 · RFC 6749 4.4"""

from __future__ import annotations

from typing import Any

from oauthlib.oauth2 import ClientCredentialsGrant

from oauth_ext import requested_resources
from oauth_ext.grants.token_request import asked_resources, targeted


class ClientCredentials(ClientCredentialsGrant):
    """Gives an access token for the service client; no refresh token, because the secret can be used again."""

    def validate_token_request(self, request: Any) -> None:
        # Authenticates the client and checks grant and scopes.
        super().validate_token_request(request)
        request.user = None
        request.organization_id = request.client.organization_id
        request.resource = targeted(lambda: requested_resources.requested(asked_resources(request)))

"""Pure: the features of this authorization server. Discovery documents and the token endpoint both read this list."""

from __future__ import annotations

from typing import Any

from oauth_ext import client_authentication, pkce, resources, scopes

AUTHORIZATION_CODE = "authorization_code"
REFRESH_TOKEN = "refresh_token"  # noqa: S105
CLIENT_CREDENTIALS = "client_credentials"
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105

# The first one is oauthlib's default grant.
GRANTS_ON: tuple[str, ...] = (
    *(AUTHORIZATION_CODE, REFRESH_TOKEN, CLIENT_CREDENTIALS, DEVICE_CODE),
    *(JWT_BEARER, TOKEN_EXCHANGE),
)
# Identity assertions of an organization's identity provider, by the grant JWT_BEARER. MCP enterprise-managed
# authorization
GRANT_PROFILES_ON: tuple[str, ...] = ("urn:ietf:params:oauth:grant-profile:id-jag",)
RESPONSE_TYPES_ON: tuple[str, ...] = ("code",)
RESPONSE_MODES_ON: tuple[str, ...] = ("query",)
CHALLENGE_METHODS_ON: tuple[str, ...] = (pkce.METHOD,)
AUTH_METHODS_ON: tuple[str, ...] = (
    client_authentication.NONE,
    client_authentication.BASIC,
    client_authentication.POST,
)
ENDPOINTS_ON: dict[str, str] = {
    "authorization_endpoint": "/oauth/authorize",
    "token_endpoint": "/oauth/token",
    "registration_endpoint": "/oauth/register",
    "revocation_endpoint": "/oauth/revoke",
    "device_authorization_endpoint": "/oauth/device_authorization",
    "jwks_uri": "/.well-known/jwks.json",
}
# Some clients ask for every listed scope, so the list holds only scopes that any client may have. protocol.md B.1
SCOPES_LISTED: tuple[str, ...] = (scopes.ANY, scopes.ALL)
RESOURCE_NAME = "Vendor tool gateway"


def server_metadata(base_url: str, *, cimd_enabled: bool) -> dict[str, Any]:
    """`cimd_enabled`: whether CIMD is on. Spec: §4.2 · RFC 8414 · RFC 9207 · D114"""
    return {
        "issuer": base_url,
        **{name: f"{base_url}{path}" for name, path in ENDPOINTS_ON.items()},
        "scopes_supported": list(SCOPES_LISTED),
        "response_types_supported": list(RESPONSE_TYPES_ON),
        "response_modes_supported": list(RESPONSE_MODES_ON),
        "grant_types_supported": list(GRANTS_ON),
        "authorization_grant_profiles_supported": list(GRANT_PROFILES_ON),
        "token_endpoint_auth_methods_supported": list(AUTH_METHODS_ON),
        "revocation_endpoint_auth_methods_supported": list(AUTH_METHODS_ON),
        "code_challenge_methods_supported": list(CHALLENGE_METHODS_ON),
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": cimd_enabled,
        "service_documentation": f"{base_url}/",
    }


def resource_metadata(base_url: str, vendor: str | None = None, vendor_name: str = "") -> dict[str, Any]:
    """Describes the unified endpoint, or the one of `vendor`. Spec: §4.2 · RFC 9728 · D115"""
    return {
        "resource": resources.unified(base_url) if vendor is None else resources.for_vendor(base_url, vendor),
        "authorization_servers": [base_url],
        "scopes_supported": [scopes.ALL if vendor is None else scopes.for_vendor(vendor)],
        "bearer_methods_supported": ["header"],
        "resource_name": RESOURCE_NAME if vendor is None else f"{vendor_name} through the {RESOURCE_NAME.lower()}",
        "resource_documentation": f"{base_url}/",
    }

"""oauthlib's token endpoint with the grants of `features.GRANTS_ON`."""

from __future__ import annotations

from typing import Any

from oauth2_provider.settings import oauth2_settings
from oauthlib.oauth2 import BearerToken, TokenEndpoint

from oauth_ext import features
from oauth_ext.grants.authorization_code import AuthorizationCode
from oauth_ext.grants.client_credentials import ClientCredentials
from oauth_ext.grants.device_code import DeviceCode
from oauth_ext.grants.jwt_bearer import JwtBearer
from oauth_ext.grants.refresh_token import Refresh
from oauth_ext.grants.token_exchange import TokenExchange

GRANTS = {
    features.AUTHORIZATION_CODE: AuthorizationCode,
    features.REFRESH_TOKEN: Refresh,
    features.CLIENT_CREDENTIALS: ClientCredentials,
    features.DEVICE_CODE: DeviceCode,
    features.JWT_BEARER: JwtBearer,
    features.TOKEN_EXCHANGE: TokenExchange,
}


def lifetime_s(request: Any) -> int:
    """Seconds: shorter than others for a token that must not outlive the one it was exchanged for."""
    seconds: int = getattr(request, "lifetime_s", None) or oauth2_settings.ACCESS_TOKEN_EXPIRE_SECONDS
    return seconds


def token_endpoint() -> TokenEndpoint:
    """Callers must ask only for a grant of GRANTS_ON: oauthlib takes any other for the first one."""
    validator = oauth2_settings.OAUTH2_VALIDATOR_CLASS()
    bearer = BearerToken(
        validator,
        oauth2_settings.ACCESS_TOKEN_GENERATOR,
        lifetime_s,
        oauth2_settings.REFRESH_TOKEN_GENERATOR,
    )
    grants = {name: GRANTS[name](validator) for name in features.GRANTS_ON}
    return TokenEndpoint(features.GRANTS_ON[0], bearer, grants)

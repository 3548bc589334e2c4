"""Clients, agent keys, tokens and signing keys. All six models of the library are swapped from the first migration."""

from oauth_ext.models.agent_key import AgentKey
from oauth_ext.models.authorization_request import AuthorizationRequest
from oauth_ext.models.client import Client
from oauth_ext.models.device_grant import Decision, DeviceGrant, UserCodeMiss
from oauth_ext.models.remembered_consent import RememberedConsent
from oauth_ext.models.service_client_allowlist import ServiceClientAllowlist
from oauth_ext.models.service_client_item_allowlist import ServiceClientItemAllowlist
from oauth_ext.models.service_client_vendor import ServiceClientVendor
from oauth_ext.models.signing_key import SigningKey
from oauth_ext.models.token_family import TokenFamily
from oauth_ext.models.tokens import AccessToken, Grant, IDToken, RefreshToken
from oauth_ext.models.trusted_issuer import LinkedSubject, TrustedIssuer, UsedAssertion

__all__ = [
    "AccessToken",
    "AgentKey",
    "AuthorizationRequest",
    "Client",
    "Decision",
    "DeviceGrant",
    "Grant",
    "IDToken",
    "LinkedSubject",
    "RefreshToken",
    "RememberedConsent",
    "ServiceClientAllowlist",
    "ServiceClientItemAllowlist",
    "ServiceClientVendor",
    "SigningKey",
    "TokenFamily",
    "TrustedIssuer",
    "UsedAssertion",
    "UserCodeMiss",
]

"""Requests to authorization servers of vendors, through the guarded client and with this deployment's settings."""

from __future__ import annotations

from django.conf import settings

from credentials.vendor_oauth.answers import BASIC, Ask, VendorOAuthFault
from credentials.vendor_oauth.requests import OAuthClient
from gateway.catalog.vendor import OAuthSettings
from gateway.lib import guarded_client
from gateway.lib.guarded_client import OutboundError, OutboundTimeout, Response, ResponseTooLarge
from gateway.lib.outbound import AddressRefused, check_url
from gateway.lib.sentences import sentence
from gateway.lib.variables import readable

TIMEOUT_S = 10.0
MAX_BYTES = 128 * 1024  # of one answer
CALLBACK_PATH = "/vendor-oauth/callback"
CLIENT_DOCUMENT_PATH = "/vendor-oauth/client.json"


def redirect_uri() -> str:
    return f"{settings.BASE_URL}{CALLBACK_PATH}"


def client_document_url() -> str:
    """Empty where authorization servers could not read it."""
    return f"{settings.BASE_URL}{CLIENT_DOCUMENT_PATH}" if settings.BASE_URL.startswith("https://") else ""


def ask_vendor_server(
    method: str,
    url: str,
    *,
    headers: dict[str, str] | None = None,
    form: dict[str, str] | None = None,
    body: bytes | None = None,
) -> Response:
    """An `Ask`. Blocks up to TIMEOUT_S. Raises: VendorOAuthFault; a redirect is an answer like any other."""
    try:
        check_url(url, allow_private=settings.ALLOW_PRIVATE_ENDPOINTS, own_url=settings.BASE_URL)
        return guarded_client.send(
            method,
            url,
            allow_private=settings.ALLOW_PRIVATE_ENDPOINTS,
            timeout_s=TIMEOUT_S,
            max_bytes=MAX_BYTES,
            headers=headers,
            form=form,
            body=body,
        )
    except (AddressRefused, ValueError):
        raise VendorOAuthFault(sentence("The vendor’s metadata leads to an address that isn’t allowed.")) from None
    except OutboundTimeout:
        raise VendorOAuthFault(sentence("The vendor’s authorization server didn’t respond in time.")) from None
    except ResponseTooLarge:
        raise VendorOAuthFault(sentence("The response of the vendor’s authorization server is too large.")) from None
    except OutboundError:
        raise VendorOAuthFault(sentence("The vendor’s authorization server can’t be reached.")) from None


ASK: Ask = ask_vendor_server


def check_endpoint(url: str) -> None:
    """Refuses an address that neither we nor a person's browser should open. Raises: VendorOAuthFault."""
    try:
        check_url(url, allow_private=settings.ALLOW_PRIVATE_ENDPOINTS, own_url=settings.BASE_URL)
    except (AddressRefused, ValueError):
        raise VendorOAuthFault(sentence("The vendor’s metadata leads to an address that isn’t allowed.")) from None


def catalog_client(oauth: OAuthSettings, issuer: str, method: str = "") -> OAuthClient:
    """The client that an operator registered by hand. Its secret goes to the catalog's issuer only.

    Raises: VendorOAuthFault for another issuer, and if id or secret are not configured.
    """
    if oauth.issuer and issuer != oauth.issuer:
        raise VendorOAuthFault(sentence("The vendor’s metadata and the catalog name different authorization servers."))
    if not oauth.client_id:
        raise VendorOAuthFault(sentence("No client is registered at this vendor yet. An operator can register one."))
    if not oauth.client_secret_env:
        return OAuthClient(oauth.client_id)
    if not oauth.issuer:
        # A vendor's metadata that were altered would collect the secret.
        raise VendorOAuthFault(
            sentence("The catalog names no issuer for this vendor’s client secret. An operator can add it.")
        )
    secret = readable(oauth.client_secret_env)
    if not secret:
        raise VendorOAuthFault(sentence("The client secret for this vendor isn’t configured. An operator can set it."))
    return OAuthClient(oauth.client_id, secret, method or BASIC)

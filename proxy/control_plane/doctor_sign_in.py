"""Diagnosis of a vendor's sign-in for operators: its metadata, and the client that the gateway has there."""

from __future__ import annotations

from credentials.vendor_asking import ASK, check_endpoint, client_document_url
from credentials.vendor_oauth.answers import AuthorizationServer, VendorOAuthFault
from credentials.vendor_oauth.discovery import discover
from gateway.catalog.vendor import OAuthSettings, Vendor
from proxy.control_plane.doctor import Finding, plain


def sign_in_findings(vendor: Vendor) -> list[Finding]:
    """Asks the vendor and its authorization server, and registers nothing. Empty for a vendor without sign-in."""
    oauth = vendor.oauth
    if oauth is None:
        return []
    try:
        server = discover(vendor.url, ask=ASK, check=check_endpoint, issuer=oauth.issuer, scopes=oauth.scopes).server
    except VendorOAuthFault as fault:
        found = [Finding("sign-in", str(fault.reason), True)]
    else:
        found = [Finding("sign-in", f"at {server.issuer}"), *_self_registered(oauth, server)]
    return [plain(each) for each in (*found, *_by_hand(vendor, oauth))]


def _self_registered(oauth: OAuthSettings, server: AuthorizationServer) -> list[Finding]:
    if oauth.is_registered_by_hand:
        return []
    if server.takes_metadata_documents and client_document_url():
        return [Finding("client", "the server reads the gateway's metadata document")]
    if server.registration_endpoint:
        return [Finding("client", "registers itself")]
    return [Finding("client", "the server takes no registrations: register one, and name it in the catalog", True)]


def _by_hand(vendor: Vendor, oauth: OAuthSettings) -> list[Finding]:
    if not oauth.is_registered_by_hand:
        return []
    if not vendor.awaits_client:
        return [Finding("client", "registered by hand")]
    names = ", ".join(oauth.missing_variables)
    return [Finding("client", f"register one at the vendor, then set {names}", not vendor.takes_key)]

"""Tokens and client secrets of vendor connections: sealed as credentials are, each under the name of its column."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from credentials.credential_scope import CredentialScope
from credentials.models import VendorConnection, VendorOAuthClient, VendorSignIn
from credentials.resolve import CredentialRef
from credentials.sealing import open_fields, seal_fields, wrapped_keys
from credentials.vendor_oauth.answers import NONE
from credentials.vendor_oauth.requests import OAuthClient
from gateway.catalog.templates import ACCESS_TOKEN

_SECRET, _REFRESH = "secret", "refresh_token"
Sealed = tuple[int, bytes]


def seal_access(row: VendorConnection, token: str) -> None:
    row.data_key_version, row.sealed = seal_fields(
        organization_id=row.organization_id,
        vendor=row.vendor,
        scope=row.scope,
        record_id=row.id,
        fields={ACCESS_TOKEN: token},
    )


def seal_refresh(row: VendorConnection, token: str) -> None:
    """An empty `token`: there is none."""
    row.refresh_data_key_version, row.sealed_refresh = None, None
    if token:
        sealed = _seal(row.organization_id, _refresh_name(row), row.id, {_REFRESH: token})
        row.refresh_data_key_version, row.sealed_refresh = sealed


def open_access(row: VendorConnection) -> str:
    """Raises: UnusableCredential."""
    ref = _ref(row.id, row.vendor, row.scope, (row.data_key_version, bytes(row.sealed)))
    return _open(row.organization_id, ref)[ACCESS_TOKEN]


def open_refresh(row: VendorConnection) -> str:
    """The refresh token, or an empty text. Raises: UnusableCredential."""
    if row.sealed_refresh is None or row.refresh_data_key_version is None:
        return ""
    sealed = (row.refresh_data_key_version, bytes(row.sealed_refresh))
    return _open_named(row.organization_id, _refresh_name(row), row.id, sealed)[_REFRESH]


def seal_client(row: VendorOAuthClient, client: OAuthClient) -> None:
    sealed = _seal(row.organization_id, f"client|{row.vendor}", row.id, {_SECRET: client.secret})
    row.data_key_version, row.sealed = sealed


def open_client(row: VendorOAuthClient) -> OAuthClient:
    """Raises: UnusableCredential."""
    sealed = (row.data_key_version, bytes(row.sealed))
    secret = _open_named(row.organization_id, f"client|{row.vendor}", row.id, sealed)[_SECRET]
    return OAuthClient(row.client_id, secret, row.auth_method if secret else NONE)


def seal_sign_in(row: VendorSignIn, fields: Mapping[str, str]) -> None:
    sealed = _seal(row.organization_id, f"sign-in|{row.vendor}", row.id, fields)
    row.data_key_version, row.sealed = sealed


def open_sign_in(row: VendorSignIn) -> dict[str, str]:
    """Raises: UnusableCredential."""
    sealed = (row.data_key_version, bytes(row.sealed))
    return _open_named(row.organization_id, f"sign-in|{row.vendor}", row.id, sealed)


def _refresh_name(row: VendorConnection) -> str:
    return f"refresh|{row.vendor}"


def _seal(organization_id: UUID, name: str, record_id: UUID, fields: Mapping[str, str]) -> Sealed:
    scope = CredentialScope.ORGANIZATION
    return seal_fields(organization_id=organization_id, vendor=name, scope=scope, record_id=record_id, fields=fields)


def _open_named(organization_id: UUID, name: str, record_id: UUID, sealed: Sealed) -> dict[str, str]:
    return _open(organization_id, _ref(record_id, name, CredentialScope.ORGANIZATION, sealed))


def _open(organization_id: UUID, ref: CredentialRef) -> dict[str, str]:
    return open_fields(ref, organization_id=organization_id, wrapped=wrapped_keys(organization_id))


def _ref(record_id: UUID, name: str, scope: CredentialScope, sealed: Sealed) -> CredentialRef:
    version, content = sealed
    return CredentialRef(record_id, name, scope, None, None, "", version, content, 1)

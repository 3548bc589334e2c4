"""The rows of an organization that every call depends on, as one statement reads them."""

from __future__ import annotations

import uuid

import msgspec

from credentials.credential_scope import CredentialScope
from credentials.data_key_cache import WrappedKey
from credentials.models import Credential, OrganizationDataKey
from credentials.resolve import CredentialRef
from gateway.lib.json_statement import Dialect, JsonStatement
from orgs.models import Organization, ToolAllowlist

ORGANIZATION, CREDENTIAL, DATA_KEY, ALLOWLIST = (
    model._meta.db_table for model in (Organization, Credential, OrganizationDataKey, ToolAllowlist)
)


class CredentialRow(msgspec.Struct, frozen=True, array_like=True):
    id: uuid.UUID
    vendor: str
    scope: CredentialScope
    team_id: uuid.UUID | None
    service_client_id: uuid.UUID | None
    name: str
    data_key_version: int
    sealed: str  # hexadecimal
    revision: int


class OrganizationRow(msgspec.Struct, frozen=True, array_like=True):
    name: str
    default_server_access: Organization.DefaultServerAccess
    credentials: list[CredentialRow]  # by vendor and id
    wrapped_keys: list[tuple[int, str, str]]  # version, key id, hexadecimal; oldest first
    allowlists: list[tuple[str, str, list[str]]]  # vendor, role, tools


def _by_organization(sql: Dialect) -> str:
    columns = ("id", "vendor", "scope", "team_id", "service_client_id", "name", "data_key_version")
    credential = sql.array(*(f"c.{name}" for name in columns), sql.hexadecimal("c.sealed"), "c.revision")
    key = sql.array("k.version", "k.key_id", sql.hexadecimal("k.wrapped_key"))
    allowlist = sql.array("l.vendor", "l.role", sql.nested("l.tools"))
    parts = (
        _items(credential, f"{CREDENTIAL} c WHERE c.organization_id = o.id ORDER BY c.vendor, c.id"),
        _items(key, f"{DATA_KEY} k WHERE k.organization_id = o.id ORDER BY k.version"),
        _items(allowlist, f"{ALLOWLIST} l WHERE l.organization_id = o.id"),
    )
    row = sql.array("o.name", "o.default_server_access", *map(sql.rows, parts))
    return f"SELECT {sql.text(row)} FROM {ORGANIZATION} o WHERE o.id = {sql.uuid('%s')}"  # noqa: S608


def _items(array: str, rows: str) -> str:
    return f"SELECT {array} AS item FROM {rows}"  # noqa: S608


BY_ORGANIZATION = JsonStatement("organization_of_callers", _by_organization)
read_organization = msgspec.json.Decoder(OrganizationRow).decode


def credential_ref(row: CredentialRow) -> CredentialRef:
    return CredentialRef(
        id=row.id,
        vendor=row.vendor,
        scope=row.scope,
        team_id=row.team_id,
        service_client_id=row.service_client_id,
        name=row.name,
        data_key_version=row.data_key_version,
        sealed=bytes.fromhex(row.sealed),
        revision=row.revision,
    )


def wrapped_key(row: tuple[int, str, str]) -> WrappedKey:
    version, key_id, wrapped = row
    return WrappedKey(version, key_id, bytes.fromhex(wrapped))

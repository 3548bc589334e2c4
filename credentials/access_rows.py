"""The rows of an organization that every call depends on, as one statement reads them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime

import msgspec

from credentials.credential_scope import CredentialScope
from credentials.data_key_cache import WrappedKey
from credentials.models import (
    QUESTION_KINDS,
    Credential,
    OrganizationDataKey,
    VendorConnection,
    VendorQuestionRules,
    VendorSignInRules,
)
from credentials.resolve import CredentialRef
from gateway.lib.clock import as_utc
from gateway.lib.json_statement import Dialect, JsonStatement
from orgs.models import ItemAllowlist, Membership, Organization, ToolAllowlist

ORGANIZATION, CREDENTIAL, DATA_KEY, ALLOWLIST, CONNECTION, MEMBERSHIP, RULES, ITEM_LIST, QUESTIONS = (
    model._meta.db_table
    for model in (
        *(Organization, Credential, OrganizationDataKey, ToolAllowlist, VendorConnection, Membership),
        *(VendorSignInRules, ItemAllowlist, VendorQuestionRules),
    )
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


class ConnectionRow(msgspec.Struct, frozen=True, array_like=True):
    id: uuid.UUID
    vendor: str
    user_id: uuid.UUID | None  # None: the organization's
    data_key_version: int
    sealed: str  # hexadecimal
    revision: int
    refresh_at: datetime | None
    expires_at: datetime | None
    status: str
    resource: str


class OrganizationRow(msgspec.Struct, frozen=True, array_like=True):
    name: str
    default_server_access: Organization.DefaultServerAccess
    credentials: list[CredentialRow]  # by vendor and id
    wrapped_keys: list[tuple[int, str, str]]  # version, key id, hexadecimal; oldest first
    allowlists: list[tuple[str, str, list[str]]]  # vendor, role, tools
    connections: list[ConnectionRow] = []
    # Vendors that people may not connect for themselves.
    closed: list[tuple[str]] = []
    item_lists: list[tuple[str, str, str, list[str]]] = []  # vendor, role, type, entries
    # The vendor, and of each of QUESTION_KINDS whether it may ask it, as JSON or as SQLite has it.
    question_rules: list[tuple[str, bool | int, bool | int, bool | int]] = []

    @property
    def questions(self) -> dict[str, frozenset[str]]:
        return {
            vendor: frozenset(kind for kind, is_allowed in zip(QUESTION_KINDS, allowed, strict=True) if is_allowed)
            for vendor, *allowed in self.question_rules
        }

    @property
    def without_people(self) -> frozenset[str]:
        return frozenset(vendor for (vendor,) in self.closed)


def _by_organization(sql: Dialect) -> str:
    columns = ("id", "vendor", "scope", "team_id", "service_client_id", "name", "data_key_version")
    credential = sql.array(*(f"c.{name}" for name in columns), sql.hexadecimal("c.sealed"), "c.revision")
    key = sql.array("k.version", "k.key_id", sql.hexadecimal("k.wrapped_key"))
    allowlist = sql.array("l.vendor", "l.role", sql.nested("l.tools"))
    times = ("v.refresh_at", "v.expires_at", "v.status", "v.resource")
    connection = sql.array(
        *("v.id", "v.vendor", "m.user_id", "v.data_key_version", sql.hexadecimal("v.sealed"), "v.revision", *times)
    )
    joined = f"{CONNECTION} v LEFT JOIN {MEMBERSHIP} m ON m.id = v.membership_id"
    parts = (
        _items(credential, f"{CREDENTIAL} c WHERE c.organization_id = o.id ORDER BY c.vendor, c.id"),
        _items(key, f"{DATA_KEY} k WHERE k.organization_id = o.id ORDER BY k.version"),
        _items(allowlist, f"{ALLOWLIST} l WHERE l.organization_id = o.id"),
        _items(connection, f"{joined} WHERE v.organization_id = o.id ORDER BY v.vendor, v.id"),
        _items(sql.array("r.vendor"), f"{RULES} r WHERE r.organization_id = o.id AND NOT r.people_may_connect"),
        _items(
            sql.array("i.vendor", "i.role", "i.kind", sql.nested("i.entries")),
            f"{ITEM_LIST} i WHERE i.organization_id = o.id",
        ),
        _items(
            sql.array("q.vendor", *(f"q.{kind}" for kind in QUESTION_KINDS)),
            f"{QUESTIONS} q WHERE q.organization_id = o.id",
        ),
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


def connection_ref(row: ConnectionRow) -> CredentialRef:
    return CredentialRef(
        id=row.id,
        vendor=row.vendor,
        scope=CredentialScope.ORGANIZATION if row.user_id is None else CredentialScope.PERSON,
        team_id=None,
        service_client_id=None,
        name="",
        data_key_version=row.data_key_version,
        sealed=bytes.fromhex(row.sealed),
        revision=row.revision,
        user_id=row.user_id,
        refresh_at_s=None if row.refresh_at is None else as_utc(row.refresh_at).timestamp(),
        expires_at_s=None if row.expires_at is None else as_utc(row.expires_at).timestamp(),
        needs_sign_in=row.status == VendorConnection.Status.NEEDS_SIGN_IN,
        is_connection=True,
        resource=row.resource,
    )


def refs_of(row: OrganizationRow) -> dict[str, list[CredentialRef]]:
    """The candidates of each vendor. A connection takes the place of the credential with its id."""
    by_id = {each.id: credential_ref(each) for each in row.credentials}
    without_people = row.without_people
    by_id |= {
        each.id: connection_ref(each)
        for each in row.connections
        # Those that end with the rule are gone; one of an earlier release that was made meanwhile is not used either.
        if each.user_id is None or each.vendor not in without_people
    }
    return by_vendor(by_id.values())


def by_vendor(refs: Iterable[CredentialRef]) -> dict[str, list[CredentialRef]]:
    found: dict[str, list[CredentialRef]] = {}
    for each in refs:
        found.setdefault(each.vendor, []).append(each)
    return found


def wrapped_key(row: tuple[int, str, str]) -> WrappedKey:
    version, key_id, wrapped = row
    return WrappedKey(version, key_id, bytes.fromhex(wrapped))

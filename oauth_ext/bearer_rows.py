"""The rows behind a bearer, as one statement reads them: token or key, client, person, rights.

The rights are those of `orgs.selectors` (`membership_row`, `team_ids`, `granted_vendors`) and of
`selectors.client_limits`; a test compares them.
"""

from __future__ import annotations

import uuid
from datetime import datetime

import msgspec
from django.db.models import Prefetch, prefetch_related_objects

from gateway.lib import clock
from gateway.lib.json_statement import Dialect, JsonStatement
from oauth_ext.models import (
    AccessToken,
    AgentKey,
    Client,
    ServiceClientAllowlist,
    ServiceClientItemAllowlist,
    ServiceClientVendor,
)
from oauth_ext.models.client import ToolMode
from oauth_ext.selectors import ClientLimits
from orgs.allowed_items import AllowedItems
from orgs.models import Membership, Organization, ServerAccess, Team, TeamMembership, User

TOKEN, KEY, CLIENT, LISTED, ALLOWLIST, ITEM_LIST, USER, MEMBERSHIP, ACCESS, TEAM, IN_TEAM = (
    model._meta.db_table
    for model in (
        *(AccessToken, AgentKey, Client, ServiceClientVendor, ServiceClientAllowlist, ServiceClientItemAllowlist),
        *(User, Membership, ServerAccess, Team, TeamMembership),
    )
)


class VendorRow(msgspec.Struct, frozen=True, array_like=True):
    """Access to one vendor. A row that ended stays until it is removed."""

    vendor: str
    expires_at: datetime | None = None


class ClientRow(msgspec.Struct, frozen=True, array_like=True):
    pk: uuid.UUID
    client_id: str
    name: str
    organization_id: uuid.UUID | None
    expires_at: datetime | None
    restricted: bool
    listed_vendors: list[VendorRow]
    tool_mode: ToolMode
    allowlists: list[tuple[str, list[str]]]  # vendor, tools
    acts_for_people: bool = False
    item_lists: list[tuple[str, str, list[str]]] = []  # vendor, type, entries
    lists_compactly: bool = False

    def limits(self, vendors: frozenset[str] | None) -> ClientLimits:
        """`vendors`: those in force, None for every vendor."""
        return ClientLimits(
            vendors=vendors,
            tools={vendor: frozenset(tools) for vendor, tools in self.allowlists},
            is_read_only=self.tool_mode != ToolMode.ALL,
            items={(vendor, kind): AllowedItems.of(kind, entries) for vendor, kind, entries in self.item_lists},
            lists_compactly=self.lists_compactly,
        )


def client_rows(organization: Organization, *, vendor: str) -> list[ClientRow]:
    """Of the service clients that have not expired, by name, with their tools of one vendor. No bearer gave them."""
    lists = Prefetch("tool_allowlists", ServiceClientAllowlist.objects.filter(vendor=vendor))
    found = Client.objects.filter(organization=organization, expires_at__gt=clock.now()).order_by("name", "id")
    return [_client_row(each) for each in found.prefetch_related("restricted_vendors", lists)]


def client_row(client: Client) -> ClientRow:
    """Of one service client, with its tools of every vendor. No bearer gave it."""
    prefetch_related_objects([client], "restricted_vendors", "tool_allowlists")
    return _client_row(client)


def _client_row(client: Client) -> ClientRow:
    """The row of a client whose lists of tools are prefetched. It says nothing of resources and prompts."""
    return ClientRow(
        pk=client.pk,
        client_id=client.client_id,
        name=client.name,
        organization_id=client.organization_id,
        expires_at=client.expires_at,
        restricted=client.restricted,
        # A row that ended stays: with it, the client counts as restricted.
        listed_vendors=[VendorRow(row.vendor, row.expires_at) for row in client.restricted_vendors.all()],
        tool_mode=ToolMode(client.tool_mode),
        allowlists=[(row.vendor, row.tools) for row in client.tool_allowlists.all()],
        acts_for_people=client.acts_for_people,
        lists_compactly=client.lists_compactly,
    )


class PersonRow(msgspec.Struct, frozen=True, array_like=True):
    """`role` is None for a person who is no member of the token's organization."""

    id: uuid.UUID
    is_active: bool
    display_name: str
    first_name: str
    last_name: str
    email: str
    role: str | None
    team_ids: list[uuid.UUID]  # oldest first
    granted_vendors: list[VendorRow]  # of the person and of each team


class TokenRow(msgspec.Struct, frozen=True, array_like=True):
    organization_id: uuid.UUID
    expires_at: datetime
    client: ClientRow | None
    person: PersonRow | None


class KeyRow(msgspec.Struct, frozen=True, array_like=True):
    pk: uuid.UUID
    secret_sha256: str  # hexadecimal, of either case
    ends_at: datetime | None  # of a key that was rotated with an overlap
    client: ClientRow


def _client(sql: Dialect) -> str:
    item = sql.array("l.vendor", "l.expires_at")
    listed = f"SELECT {item} AS item FROM {LISTED} l WHERE l.client_id = c.id"  # noqa: S608
    allowlist = sql.array("a.vendor", sql.nested("a.tools"))
    allowlists = f"SELECT {allowlist} AS item FROM {ALLOWLIST} a WHERE a.client_id = c.id"  # noqa: S608
    entries = sql.array("i.vendor", "i.kind", sql.nested("i.entries"))
    items = f"SELECT {entries} AS item FROM {ITEM_LIST} i WHERE i.client_id = c.id"  # noqa: S608
    return sql.array(
        *("c.id", "c.client_id", "c.name", "c.organization_id", "c.expires_at", "c.restricted", sql.rows(listed)),
        *("c.tool_mode", sql.rows(allowlists), "c.acts_for_people", sql.rows(items), "c.lists_compactly"),
    )


def _person(sql: Dialect) -> str:
    teams = (
        f"SELECT i.team_id AS item FROM {IN_TEAM} i JOIN {TEAM} t ON t.id = i.team_id"  # noqa: S608
        " WHERE i.membership_id = m.id ORDER BY t.created_at, t.id"
    )
    # Two halves, each by an index of its own: an organization may have 100,000 rows.
    item = sql.array("s.vendor", "s.expires_at")
    granted = (
        f"SELECT {item} AS item FROM {ACCESS} s"  # noqa: S608
        " WHERE s.membership_id = m.id AND s.organization_id = m.organization_id"
        f" UNION ALL SELECT {item} FROM {IN_TEAM} i JOIN {ACCESS} s ON s.team_id = i.team_id"
        " WHERE i.membership_id = m.id AND s.organization_id = m.organization_id"
    )
    names = ("u.id", "u.is_active", "u.display_name", "u.first_name", "u.last_name", "u.email")
    return sql.array(*names, "m.role", sql.values(teams), sql.rows(granted))


def _by_access_token(sql: Dialect) -> str:
    client = f"CASE WHEN c.id IS NOT NULL THEN {_client(sql)} END"
    person = f"CASE WHEN u.id IS NOT NULL THEN {_person(sql)} END"
    columns = sql.array("a.organization_id", "a.expires", sql.nested(client), sql.nested(person))
    return (
        f"SELECT {sql.text(columns)} FROM {TOKEN} a LEFT JOIN {CLIENT} c ON c.id = a.application_id"  # noqa: S608
        f" LEFT JOIN {USER} u ON u.id = a.user_id"
        f" LEFT JOIN {MEMBERSHIP} m ON m.user_id = a.user_id AND m.organization_id = a.organization_id"
        " WHERE a.token_checksum = %s"
    )


def _by_agent_key(sql: Dialect) -> str:
    columns = sql.array("k.id", sql.hexadecimal("k.secret_sha256"), "k.ends_at", sql.nested(_client(sql)))
    return (
        f"SELECT {sql.text(columns)} FROM {KEY} k JOIN {CLIENT} c ON c.id = k.client_id"  # noqa: S608
        " WHERE k.prefix = %s"
    )


BY_ACCESS_TOKEN = JsonStatement("caller_by_access_token", _by_access_token)
BY_AGENT_KEY = JsonStatement("caller_by_agent_key", _by_agent_key)
# SQLite writes booleans as 0 and 1.
read_token = msgspec.json.Decoder(TokenRow, strict=False).decode
read_key = msgspec.json.Decoder(KeyRow, strict=False).decode

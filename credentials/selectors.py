"""Queries on credentials: metadata for pages and the API, sealed rows for the call path."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from credentials.credential_scope import CredentialScope
from credentials.models import Credential, VendorConnection, VendorQuestionRules, VendorSignInRules
from credentials.resolve import CredentialRef
from gateway.lib.rows import grouped, required_row
from orgs.models import Membership, Organization, User

# The same as CredentialSummary.is_usable.
_USABLE = ~Q(scope=CredentialScope.NAMED_KEY.value, team__isnull=True)
_FOR_PEOPLE = _USABLE & ~Q(scope=CredentialScope.SERVICE_CLIENT.value)


@dataclass(frozen=True, slots=True)
class CredentialSummary:
    """The metadata of a credential that a page may show. It holds nothing of the content."""

    id: UUID
    vendor: str
    scope: CredentialScope
    name: str
    team_id: UUID | None
    team_name: str
    service_client_id: UUID | None
    service_client_name: str
    # The subject of its calls in the log.
    service_client_subject: str
    created_by_name: str
    created_at: datetime
    updated_at: datetime
    validated_at: datetime | None
    # When and by whom the fields were stored. Without a name the person is gone.
    stored_at: datetime
    stored_by_name: str
    last_used_at: datetime | None
    # The vendor's answer to the last check; `check_verdict` is a `Verdict`, or empty.
    checked_at: datetime | None
    check_verdict: str
    check_detail: str
    check_tools: int | None

    @property
    def is_usable(self) -> bool:
        # A named key without a team serves no call: it is stored, but connects nothing.
        return self.scope is not CredentialScope.NAMED_KEY or self.team_id is not None

    def serves(self, team_ids: Collection[UUID]) -> bool:
        """Whether the calls of a person in these teams may use it. Spec: D67"""
        if self.scope in (CredentialScope.NAMED_KEY, CredentialScope.TEAM):
            return self.team_id in team_ids
        return self.scope is CredentialScope.ORGANIZATION


def connected_among(rows: Iterable[CredentialSummary]) -> list[str]:
    """`connected_vendors` of rows that are loaded already. Spec: D141"""
    return sorted({row.vendor for row in rows if row.is_usable})


def people_vendors_among(rows: Iterable[CredentialSummary]) -> list[str]:
    """`people_vendors` of rows that are loaded already. Spec: D58"""
    return sorted({row.vendor for row in rows if row.is_usable and row.scope is not CredentialScope.SERVICE_CLIENT})


def organization_vendors_among(rows: Iterable[CredentialSummary]) -> list[str]:
    """`organization_vendors` of rows that are loaded already. Spec: §4.6 · D141"""
    return sorted({row.vendor for row in rows if row.scope is CredentialScope.ORGANIZATION})


def connected_vendors(organization: Organization) -> list[str]:
    """Slugs of the vendors with a usable credential at any scope, sorted. Spec: §4.1 · D141"""
    # A vendor that needs no credentials has a row without fields once an admin switched it on.
    return sorted(
        _and_of_people(Credential.objects.filter(_USABLE, organization=organization), organization=organization)
    )


def organization_vendors(organization: Organization) -> list[str]:
    """List the vendors with credentials of the organization, sorted. Spec: §4.6 · D141"""
    return vendors_at(organization, CredentialScope.ORGANIZATION)


def vendors_serving(organization: Organization, team_ids: Sequence[UUID]) -> list[str]:
    """Slugs of the vendors with a credential that a person in these teams may use, sorted. Spec: D67"""
    of_teams = Q(scope__in=[CredentialScope.NAMED_KEY.value, CredentialScope.TEAM.value], team_id__in=team_ids)
    return _vendors(organization, of_teams | Q(scope=CredentialScope.ORGANIZATION.value))


def vendors_in_use() -> set[str]:
    """Slugs of the vendors that any organization connected; the health monitor probes these."""
    return set(_and_of_people(Credential.objects.filter(_USABLE)))


def organizations_by_vendor(vendors: Collection[str]) -> dict[str, list[UUID]]:
    """Of some vendors, the organizations that have connected each."""
    return grouped(_connections(vendor__in=vendors).order_by("vendor", "organization_id")) if vendors else {}


def connected_pairs(org_ids: Collection[UUID], vendors: Collection[str]) -> set[tuple[UUID, str]]:
    """Of some organizations and some vendors, each organization with a vendor that it has connected."""
    rows = _connections(organization_id__in=org_ids, vendor__in=vendors)
    return {(org_id, vendor) for vendor, org_id in rows}


def _connections(**where: object) -> QuerySet[Credential, tuple[str, UUID]]:
    """Each vendor with each organization that has connected it, or whose people have for themselves."""
    columns = "vendor", "organization_id"
    own = VendorConnection.objects.filter(membership__isnull=False, **where)
    return Credential.objects.filter(_USABLE, **where).values_list(*columns).union(own.values_list(*columns))


def vendors_of_person(user: User) -> set[str]:
    """Slugs of the vendors that any of the person's organizations connected."""
    rows = Credential.objects.filter(_USABLE, organization__memberships__user=user)
    return set(_and_of_people(rows, membership__user=user))


def connects(vendor: str) -> Q:
    """Whether the organization of a membership has connected the vendor, or the person has: a column of a query of
    memberships."""
    stored = Credential.objects.filter(_USABLE, organization=OuterRef("organization_id"), vendor=vendor)
    return Exists(stored) | Exists(VendorConnection.objects.filter(membership=OuterRef("pk"), vendor=vendor))


def vendors_at(
    organization: Organization,
    scope: CredentialScope,
    *,
    team_id: UUID | None = None,
    service_client_id: UUID | None = None,
) -> list[str]:
    """Sorted slugs of one scope's vendors. Spec: §4.6 · D66"""
    return _vendors(organization, scope=scope.value, team_id=team_id, service_client_id=service_client_id)


def people_vendors(organization: Organization) -> list[str]:
    """Slugs of the vendors with any credential for people, sorted. Spec: D58"""
    return sorted(people_vendor_slugs(organization))


def people_vendor_slugs(organization: Organization) -> QuerySet[Credential, str]:
    """`people_vendors` as part of another query, in no order."""
    rows = Credential.objects.filter(_FOR_PEOPLE, organization=organization)
    return _and_of_people(rows, organization=organization)


def vendors_by_team(organization: Organization) -> dict[UUID, list[str]]:
    """Team id to sorted slugs: the team's own credentials and named keys bound to it. Spec: D60"""
    return _vendors_by(organization, "team_id")


def vendors_by_service_client(organization: Organization) -> dict[UUID, list[str]]:
    """Service client id to sorted slugs; a client without credentials is absent."""
    return _vendors_by(organization, "service_client_id")


def credential_summaries(organization: Organization, *, vendor: str | None = None) -> list[CredentialSummary]:
    """Every credential of the organization, by vendor, most general scope first, then by name."""
    rows = _unsealed(organization).select_related("team", "service_client", "created_by", "stored_by")
    if vendor is not None:
        rows = rows.filter(vendor=vendor)
    scopes = list(CredentialScope)
    found = [_summary(row) for row in rows]
    return sorted(
        found, key=lambda each: (each.vendor, scopes.index(each.scope), each.name, each.team_name, each.created_at)
    )


def credential(organization: Organization, credential_id: UUID) -> Credential:
    """Raises: NotFound, also for another organization's credential. Spec: D4"""
    return required_row(_unsealed(organization).filter(pk=credential_id))


def credential_at(
    organization: Organization,
    vendor: str,
    scope: CredentialScope,
    *,
    team_id: UUID | None = None,
    service_client_id: UUID | None = None,
) -> Credential:
    """The one credential of a vendor at a scope other than named_key. Raises: NotFound. Spec: D4"""
    rows = _unsealed(organization).filter(vendor=vendor, scope=scope.value)
    return required_row(rows.filter(Q(team_id=team_id), Q(service_client_id=service_client_id)))


def named_keys(organization: Organization, vendor: str) -> QuerySet[Credential]:
    """Sorted by name. Spec: §4.6 · D65"""
    rows = _unsealed(organization).filter(vendor=vendor, scope=CredentialScope.NAMED_KEY.value)
    return rows.order_by("name", "id")


def credential_refs(organization_id: UUID) -> tuple[CredentialRef, ...]:
    """Every credential and connection of the organization for the call path, by vendor and id."""
    rows = Credential.objects.filter(organization_id=organization_id)
    connections = VendorConnection.objects.select_related("membership").filter(organization_id=organization_id)
    rules = sign_in_rules_of([organization_id])
    forbidden = {vendor for (_, vendor), row in rules.items() if not row.people_may_connect}
    # A connection of the organization takes the place of the credential with its id.
    found = {row.id: ref(row) for row in rows} | {
        row.id: connection_ref(row) for row in connections if row.membership_id is None or row.vendor not in forbidden
    }
    return tuple(sorted(found.values(), key=lambda each: (each.vendor, each.id)))


def refs_by_vendor(organization_id: UUID) -> dict[str, tuple[CredentialRef, ...]]:
    """The candidates of each vendor; a vendor without a credential is absent."""
    grouped = groupby(credential_refs(organization_id), key=lambda each: each.vendor)
    return {vendor: tuple(refs) for vendor, refs in grouped}


def ref(row: Credential) -> CredentialRef:
    return CredentialRef(
        id=row.id,
        vendor=row.vendor,
        scope=CredentialScope(row.scope),
        team_id=row.team_id,
        service_client_id=row.service_client_id,
        name=row.name,
        data_key_version=row.data_key_version,
        sealed=bytes(row.sealed),
        revision=row.revision,
    )


def connection_ref(row: VendorConnection) -> CredentialRef:
    return CredentialRef(
        id=row.id,
        vendor=row.vendor,
        scope=row.scope,
        team_id=None,
        service_client_id=None,
        name="",
        data_key_version=row.data_key_version,
        sealed=bytes(row.sealed),
        revision=row.revision,
        user_id=row.membership.user_id if row.membership else None,
        refresh_at_s=row.refresh_at.timestamp() if row.refresh_at else None,
        expires_at_s=row.expires_at.timestamp() if row.expires_at else None,
        needs_sign_in=row.status == VendorConnection.Status.NEEDS_SIGN_IN,
        is_connection=True,
        resource=row.resource,
    )


def organization_connections(organization: Organization) -> list[VendorConnection]:
    """Of the organization's level, by vendor; the tokens stay in the database."""
    return list(_unsealed_connections().filter(organization=organization, membership=None).order_by("vendor"))


def own_connections(user: User) -> list[VendorConnection]:
    """The person's own ones in all organizations, by vendor; the tokens stay in the database."""
    rows = _unsealed_connections().filter(membership__user=user)
    return list(rows.order_by("vendor", "organization__name", "id"))


def connection_of(membership: Membership, vendor: str, *, is_own: bool) -> VendorConnection | None:
    """The person's own one, or the organization's; the tokens stay in the database."""
    rows = _unsealed_connections().filter(organization_id=membership.organization_id, vendor=vendor)
    return rows.filter(membership=membership if is_own else None).first()


def people_connections(organization: Organization, vendor: str) -> list[VendorConnection]:
    """The people who are connected to the vendor, earliest first; the tokens stay in the database."""
    rows = _unsealed_connections().filter(organization=organization, vendor=vendor, membership__isnull=False)
    return list(rows.order_by("connected_at", "id"))


def sign_in_rules(organization_id: UUID, vendor: str) -> VendorSignInRules:
    """The organization's rules for sign-ins at the vendor; a new row, not stored, where it has none."""
    row = VendorSignInRules.objects.filter(organization_id=organization_id, vendor=vendor).first()
    return row or VendorSignInRules(organization_id=organization_id, vendor=vendor)


def question_rules(organization_id: UUID, vendor: str) -> VendorQuestionRules:
    """The organization's rules for questions of the vendor; a new row, not stored, where it has none."""
    row = VendorQuestionRules.objects.filter(organization_id=organization_id, vendor=vendor).first()
    return row or VendorQuestionRules(organization_id=organization_id, vendor=vendor)


def sign_in_rules_of(org_ids: Iterable[UUID]) -> dict[tuple[UUID, str], VendorSignInRules]:
    """The rules of some organizations, by organization and vendor."""
    rows = VendorSignInRules.objects.filter(organization_id__in=list(org_ids))
    return {(row.organization_id, row.vendor): row for row in rows}


def _unsealed_connections() -> QuerySet[VendorConnection]:
    rows = VendorConnection.objects.select_related("organization", "membership__user", "connected_by")
    return rows.defer("sealed", "sealed_refresh")


def _unsealed(organization: Organization) -> QuerySet[Credential]:
    # The sealed column stays in the database: only the call path reads it.
    return Credential.objects.filter(organization=organization).defer("sealed")


def _vendors(organization: Organization, *conditions: Q, **where: object) -> list[str]:
    rows = Credential.objects.filter(*conditions, organization=organization, **where)
    return list(rows.order_by("vendor").values_list("vendor", flat=True).distinct())


def _and_of_people(rows: QuerySet[Credential], **where: object) -> QuerySet[Credential, str]:
    """The vendors of the rows, and those that people have connected for themselves, each once and in one query."""
    own = VendorConnection.objects.filter(membership__isnull=False, **where)
    return rows.values_list("vendor", flat=True).union(own.values_list("vendor", flat=True))


def _vendors_by(organization: Organization, holder: str) -> dict[UUID, list[str]]:
    rows = Credential.objects.filter(organization=organization, **{f"{holder}__isnull": False})
    return grouped(rows.order_by("vendor").values_list(holder, "vendor").distinct())


def _summary(row: Credential) -> CredentialSummary:
    # Earlier releases did not say who stored the fields.
    stored_by = row.created_by if row.stored_at is None else row.stored_by
    return CredentialSummary(
        id=row.id,
        vendor=row.vendor,
        scope=CredentialScope(row.scope),
        name=row.name,
        team_id=row.team_id,
        team_name=row.team.name if row.team else "",
        service_client_id=row.service_client_id,
        service_client_name=row.service_client.name if row.service_client else "",
        service_client_subject=row.service_client.subject if row.service_client else "",
        created_by_name=row.created_by.name if row.created_by else "",
        created_at=row.created_at,
        updated_at=row.updated_at,
        validated_at=row.validated_at,
        stored_at=row.stored_at or row.updated_at,
        stored_by_name=stored_by.name if stored_by else "",
        last_used_at=row.last_used_at,
        checked_at=row.checked_at,
        check_verdict=row.check_verdict,
        check_detail=row.check_detail,
        check_tools=row.check_tools,
    )

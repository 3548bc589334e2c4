"""Brings a restored database up to date with the ends that it does not know. docs/decisions/0083

Each organization is one transaction, and a repeated run ends only what is left, so a run that was killed is run again.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from django.db import connection, transaction
from django.db.models import QuerySet

from audit.actor import system
from audit.admin_log import record_admin
from audit.event_types import EventType
from audit.models import AdminAuditEntry
from audit.stream_position import begin_era
from credentials.models import Credential
from credentials.services.credentials import delete_credential
from credentials.services.vendor_connections import end_connection_again
from gateway.coordination import epochs
from gateway.lib import clock
from gateway.lib.errors import Conflict, NotFound
from gateway.lib.revocation_journal import End, EndKind, WrittenEnd
from oauth_ext.services import ends_again as tokens
from oauth_ext.services.deactivation import deactivate_person
from orgs.locking import lock_organization
from orgs.models import Organization, User
from orgs.services import ends_again as people
from orgs.services import management_tokens
from orgs.services.members import end_membership_again
from orgs.services.organizations import delete_organization_again

ACTOR = system("after_restore")
_ROWS = 2_000


@dataclass
class RestoreReport:
    """How many of each kind ended, and in how many organizations that is written down."""

    ended: Counter[EndKind] = field(default_factory=Counter)
    organizations: int = 0
    bumped: int = 0


def end_again(written: Iterable[WrittenEnd], *, restored_to: datetime) -> RestoreReport:
    """End what the journal says has ended since `restored_to`."""
    report, by_kind = RestoreReport(), defaultdict[EndKind, list[WrittenEnd]](list)
    for each in written:
        by_kind[each.end.kind].append(each)
    for each in by_kind[EndKind.ORGANIZATION]:
        report.ended[EndKind.ORGANIZATION] += delete_organization_again(actor=ACTOR, org_id=uuid.UUID(each.end.id))
    for each in by_kind[EndKind.PERSON]:
        report.ended[EndKind.PERSON] += _deactivated(uuid.UUID(each.end.id))
    for each in by_kind[EndKind.SUPPORT_ACCESS]:
        report.ended[EndKind.SUPPORT_ACCESS] += people.end_support_access_again(uuid.UUID(each.end.id))
    # A person who left keeps no session either: the words of the journal are the person and the session.
    ended_people: dict[str, datetime] = {}
    for each in [*by_kind[EndKind.PERSON], *by_kind[EndKind.PERSON_SESSIONS]]:
        ended_people[each.end.id] = max(each.at, ended_people.get(each.end.id, each.at))
    sessions = {each.end.id for each in by_kind[EndKind.SESSION]}
    report.ended[EndKind.SESSION] += people.end_sessions_again(ended_people, sessions)
    by_organization = _by_organization(by_kind)
    for organization in _organizations():
        ends = by_organization.get(organization.pk, ())
        work = partial(_ended_in_organization, ends)
        _in_organization(organization, restored_to, report, work, "journal")
    _finish(report)
    return report


def end_everything(*, restored_to: datetime) -> RestoreReport:
    """Without a journal: end all sessions, tokens, keys, invitations and claims on mail domains of before."""
    report = RestoreReport()
    report.ended[EndKind.SESSION] += people.end_sessions_of_before(restored_to)
    tokens.end_authorization_requests(restored_to)
    for organization in _organizations():
        work = partial(_all_ended_in_organization, organization, restored_to)
        _in_organization(organization, restored_to, report, work, "everything")
    _finish(report)
    return report


def _organizations() -> Iterator[Organization]:
    # Not one long query: each organization is a transaction.
    last: uuid.UUID | None = None
    while rows := list(_after(last)[:_ROWS]):
        yield from rows
        last = rows[-1].pk


def _after(last: uuid.UUID | None) -> QuerySet[Organization]:
    rows = Organization.objects.order_by("pk")
    return rows if last is None else rows.filter(pk__gt=last)


def _by_organization(by_kind: dict[EndKind, list[WrittenEnd]]) -> dict[uuid.UUID, list[WrittenEnd]]:
    found = defaultdict[uuid.UUID, list[WrittenEnd]](list)
    keys = by_kind[EndKind.AGENT_KEY]
    for start in range(0, len(keys), _ROWS):
        batch = keys[start : start + _ROWS]
        owners = tokens.organizations_of_keys([uuid.UUID(each.end.id) for each in batch])
        for each in batch:
            if (owner := owners.get(uuid.UUID(each.end.id))) is not None:
                found[owner].append(each)
    for rows in by_kind.values():
        for each in rows:
            if each.end.org:
                found[uuid.UUID(each.end.org)].append(each)
    return found


def _in_organization(
    organization: Organization,
    restored_to: datetime,
    report: RestoreReport,
    work: Callable[[], Counter[EndKind]],
    source: str,
) -> None:
    """Run `work` and write its counts to the organization's log, in one transaction."""
    with transaction.atomic():
        try:
            lock_organization(organization)
        except NotFound:
            return
        counts = +work()
        facts = {"restored_to": clock.rfc3339(restored_to), "source": source}
        if not counts and _is_written(organization.pk, facts):
            return
        record_admin(
            EventType.ORGANIZATION_RESTORED,
            org_id=organization.pk,
            actor=ACTOR,
            target=organization.as_target(),
            metadata={**facts, "ended": {kind.value: number for kind, number in sorted(counts.items())}},
        )
    report.ended += counts
    report.organizations += 1


def _is_written(org_id: uuid.UUID, facts: dict[str, str]) -> bool:
    rows = AdminAuditEntry.objects.filter(org_id=org_id, event_type=EventType.ORGANIZATION_RESTORED.value)
    return any(facts.items() <= row.metadata.items() for row in rows.only("metadata"))


def _ended_in_organization(ends: Iterable[WrittenEnd]) -> Counter[EndKind]:
    counts: Counter[EndKind] = Counter()
    for each in _without_lost_overlaps(ends):
        counts[each.end.kind] += _ended(each.end, each.at)
    return counts


def _without_lost_overlaps(ends: Iterable[WrittenEnd]) -> Iterator[WrittenEnd]:
    """A client keeps one old secret at most: another rotation ended it, so only the last one may have an overlap.

    Also in order: the lines of several hosts come one file after the other.
    """
    last: dict[str, WrittenEnd] = {}
    for each in sorted(ends, key=lambda each: each.end.successor_at or each.at):
        if each.end.kind is not EndKind.CLIENT_SECRET:
            yield each
        elif (former := last.get(each.end.id)) is not None:
            yield replace(former, end=replace(former.end, until=None))
            last[each.end.id] = each
        else:
            last[each.end.id] = each
    yield from last.values()


def _all_ended_in_organization(organization: Organization, restored_to: datetime) -> Counter[EndKind]:
    counts = Counter(tokens.end_all_of_organization(org_id=organization.pk, restored_to=restored_to))
    counts[EndKind.INVITATION] = people.revoke_all_invitations(
        actor=ACTOR, organization=organization, restored_to=restored_to
    )
    counts[EndKind.MANAGEMENT_TOKEN] = management_tokens.end_tokens_of_before(
        organization=organization, restored_to=restored_to
    )
    counts[EndKind.MAIL_DOMAIN] = people.release_all_domains(
        actor=ACTOR, organization=organization, restored_to=restored_to
    )
    return counts


def _ended(end: End, ended_at: datetime) -> bool:
    if end.kind is EndKind.ACCESS_TOKEN:
        return tokens.end_access_token_again(number=int(end.id), ended_at=ended_at)
    key = uuid.UUID(end.id)
    match end.kind:
        case EndKind.AGENT_KEY:
            return tokens.end_key_again(actor=ACTOR, key_id=key, until=end.until)
        case EndKind.TOKEN_FAMILY:
            return tokens.end_family_again(key)
        case EndKind.TRUSTED_ISSUER:
            return tokens.remove_issuer_again(actor=ACTOR, org_id=uuid.UUID(end.org), issuer_id=key)
        case EndKind.CLIENT_SECRET:
            successor_at = end.successor_at or ended_at
            return tokens.end_secret_again(actor=ACTOR, client_id=key, until=end.until, successor_at=successor_at)
        case EndKind.SERVICE_CLIENT:
            return tokens.delete_client_again(actor=ACTOR, client_id=key)
        case EndKind.MANAGEMENT_TOKEN:
            return management_tokens.end_token_again(actor=ACTOR, token_id=key)
        case EndKind.MEMBERSHIP:
            return end_membership_again(actor=ACTOR, org_id=uuid.UUID(end.org), user_id=key, ended_at=ended_at)
        case EndKind.CREDENTIAL:
            return _credential_deleted(key)
        case EndKind.INVITATION:
            organization = Organization.objects.get(pk=end.org)
            return people.revoke_invitation_again(actor=ACTOR, organization=organization, invitation_id=key)
        case EndKind.MAIL_DOMAIN:
            organization = Organization.objects.get(pk=end.org)
            return people.release_domain_again(actor=ACTOR, organization=organization, domain_id=key)
        case _:
            return False


def _credential_deleted(key: uuid.UUID) -> bool:
    credential = Credential.objects.defer("sealed").filter(pk=key).first()
    if credential is None:
        return end_connection_again(key)
    delete_credential(actor=ACTOR, credential=credential)
    return True


def _deactivated(user_id: uuid.UUID) -> bool:
    try:
        # Agent keys that ended with the person have lines of their own.
        deactivate_person(actor=ACTOR, user_id=user_id, ends_agent_keys=False)
    except (Conflict, NotFound):
        return False
    return True


def _finish(report: RestoreReport) -> None:
    """Positions of the logs go on above all that are known, and every cached row counts as changed."""
    if connection.vendor == "postgresql":
        begin_era(connection)
    report.bumped = sum(_bump(names) for names in _epoch_names())


def _epoch_names() -> Iterator[list[str]]:
    yield [epochs.CATALOG, epochs.SIGNING_KEYS]
    for rows, name in ((Organization.objects, epochs.organization), (User.objects, epochs.subject)):
        keys = list(rows.values_list("pk", flat=True))
        yield [name(str(key)) for key in keys]
    yield [epochs.subject(subject) for subject in tokens.subjects_of_service_clients()]


def _bump(names: list[str]) -> int:
    epochs.bump_on_commit(*names)
    return len(names)

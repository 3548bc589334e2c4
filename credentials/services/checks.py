"""The vendor's answer to a check of a stored credential."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from audit.admin_log import record_admin
from audit.event_types import EventType
from credentials.models import Credential
from credentials.services.credentials import metadata
from credentials.vendor_check import CheckResult, Verdict
from gateway.lib import clock
from gateway.lib.rows import required_row
from orgs.locking import lock_for_change
from orgs.models import Organization, User
from orgs.roles import Role


@transaction.atomic
def record_check(
    *, actor: User, organization: Organization, credential_id: UUID, revision: int, check: CheckResult
) -> Credential:
    """Note the answer for the fields of that revision, in the row and in the admin log. Spec: D97

    Raises: NotFound if the credential was deleted or replaced meanwhile; Forbidden.
    """
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    rows = Credential.objects.filter(organization=organization).defer("sealed")
    row = required_row(rows.filter(pk=credential_id, revision=revision))
    row.checked_at, row.check_verdict, row.check_detail = clock.now(), check.verdict.value, check.detail
    row.check_tools = check.tools
    # Silence takes nothing back that the vendor has said before.
    if check.validated:
        row.validated_at = row.checked_at
    elif check.verdict is Verdict.REJECTED:
        row.validated_at = None
    row.save(update_fields=["checked_at", "check_verdict", "check_detail", "check_tools", "validated_at"])
    # Calls read none of these columns, so no epoch changes.
    record_admin(
        EventType.CREDENTIAL_CHECKED,
        org_id=organization.id,
        actor=actor.as_actor(),
        target=row.as_target(),
        metadata=metadata(row, verdict=check.verdict.value, tools=check.tools),
    )
    return row

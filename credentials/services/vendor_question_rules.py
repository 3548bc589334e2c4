"""The kinds of questions that a vendor may ask an organization's callers. docs/decisions/0118"""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

from audit.admin_log import record_admin
from audit.event_types import EventType
from credentials.models import QUESTION_KINDS, VendorQuestionRules
from credentials.selectors import question_rules
from gateway.catalog.vendor import Vendor
from gateway.coordination import epochs
from gateway.lib import clock
from orgs.locking import lock_for_change
from orgs.models import Organization, User
from orgs.roles import Role


@transaction.atomic
def change_question_rules(
    *, actor: User, organization: Organization, vendor: Vendor, allowed: Collection[str]
) -> VendorQuestionRules:
    """Counts for the next question. `allowed`: of QUESTION_KINDS. The first choice is kept even if it is the default.

    Raises: NotFound, Forbidden.
    """
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    rules = question_rules(organization.id, vendor.slug)
    if rules.allowed == frozenset(allowed) and not rules._state.adding:
        return rules
    for kind in QUESTION_KINDS:
        setattr(rules, kind, kind in allowed)
    rules.changed_at = clock.now()
    rules.save()
    record_admin(
        EventType.VENDOR_QUESTION_RULES_CHANGED,
        org_id=organization.id,
        actor=actor.as_actor(),
        target=rules.as_target(),
        metadata={"vendor": vendor.slug, **{kind: kind in allowed for kind in QUESTION_KINDS}},
    )
    epochs.bump_on_commit(epochs.organization(organization.id))
    return rules

"""Grace periods that run out: no event tells it, and the admin log has to. Spec: D39"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from audit.actor import system
from billing.models import Subscription
from billing.services import save_change, standing, subscription_for_change
from billing.states import PAST_DUE_GRACE, PlanState, SubscriptionStatus
from gateway.lib import clock
from gateway.lib.errors import NotFound
from gateway.lib.sentences import sentence

CLOCK = system(sentence("grace period"))


def record_lapses() -> int:
    """Records each grace period that has run out, once. Returns their number. The gates knew it at that moment."""
    now = clock.now()
    over = Subscription.objects.filter(
        status=SubscriptionStatus.PAST_DUE.value, past_due_since__lt=now - PAST_DUE_GRACE
    ).exclude(recorded_state=PlanState.LAPSED.value)
    return sum(_record(row, now) for row in over.select_related("organization"))


@transaction.atomic
def _record(seen: Subscription, now: datetime) -> bool:
    try:
        row = subscription_for_change(seen.organization)
    except NotFound:
        return False
    was = standing(row)
    save_change(row, was=was, actor=CLOCK)
    return PlanState(row.recorded_state) is not was.state

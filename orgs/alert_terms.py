"""Pure: the kinds of alerts, the thing that each is about, and its limits. Spec: D166 · docs/decisions/0096"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum


class AlertKind(StrEnum):
    """A cause is one thing of a kind, such as one vendor. It has one alert from its begin to its end."""

    VENDOR_DOWN = "vendor_down"  # cause: the vendor's slug
    CREDENTIAL_REJECTED = "credential_rejected"  # cause: the credential's id
    AGENT_EXPIRING = "agent_expiring"  # cause: the client id of the service account; its key ends with it
    TOOLS_CHANGED = "tools_changed"  # cause: the vendor's slug
    ERROR_SPIKE = "error_spike"  # cause: the vendor's slug
    LOG_SHIPPING_FAILING = "log_shipping_failing"  # cause: the destination's id
    PLAN_PAST_DUE = "plan_past_due"  # cause: "plan"


class Moment(StrEnum):
    """The part of an alert that a message tells."""

    BEGIN = "begin"
    WORSE = "worse"  # such as the last day before an expiry
    END = "end"
    TEST = "test"


ALL_KINDS = tuple(AlertKind)
# Told to owners alone: they alone can renew a plan.
OF_OWNERS = frozenset({AlertKind.PLAN_PAST_DUE})
# Told also to an organization whose plan has ended.
OF_LAPSED = frozenset({AlertKind.PLAN_PAST_DUE})
EXPIRY_DAYS = (14, 3, 1)  # levels 1, 2 and 3
# One cause begins at most once in it, however often the vendor comes and goes.
BEGINS_APART = timedelta(hours=1)
# A cause that comes back earlier was not over.
OVER_AFTER = timedelta(minutes=5)
SPIKE_WINDOW = timedelta(minutes=10)
SPIKE_BEGINS_AT = (20, 0.25)  # failed calls of a vendor in the window, and their share of its calls
SPIKE_ENDS_BELOW = 0.1  # share
SECRET_OVERLAP = timedelta(hours=24)
MESSAGES_KEPT_FOR = timedelta(days=90)
URL_CHARACTERS = 2_048  # of a webhook
WEBHOOK_GIVEN_UP_AFTER = timedelta(days=1)

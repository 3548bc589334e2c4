"""How much a stored credential is in use, for pages that are about to delete it."""

from __future__ import annotations

from audit import selectors as log
from credentials.rejections import IDENTIFIED_BY_CALLER, callers
from credentials.selectors import CredentialSummary, credential_summaries
from gateway.lib import clock
from orgs.models import Organization


def calls_through(organization: Organization, row: CredentialSummary) -> log.CallsThrough:
    """The calls of the last 30 days, and who made them."""
    subjects = None
    if row.scope in IDENTIFIED_BY_CALLER:
        rows = credential_summaries(organization, vendor=row.vendor)
        subjects = callers(organization, rows).get(row.id, ())
    since = clock.now() - log.IN_USE_FOR
    return log.calls_through(organization.id, log.CredentialUse(row.vendor, row.scope.value, row.name, since, subjects))

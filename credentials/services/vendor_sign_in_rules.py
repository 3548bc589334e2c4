"""An organization's rules for sign-ins at a vendor: people, scopes, authorization server. Contract: 8"""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.db import transaction

from audit.admin_log import record_admin
from audit.event_types import EventType
from credentials.credential_scope import CredentialScope
from credentials.errors import ConnectionNotOffered
from credentials.models import VendorConnection, VendorSignIn, VendorSignInRules
from credentials.selectors import sign_in_rules
from credentials.services.vendor_connections import record_connection
from gateway.catalog.vendor import Vendor
from gateway.coordination import epochs
from gateway.lib import clock
from gateway.lib.errors import Invalid
from gateway.lib.sentences import sentence
from orgs.locking import lock_for_change
from orgs.models import Organization, User
from orgs.roles import Role

SCOPE = r"^[\x21\x23-\x5b\x5d-\x7e]+$"  # RFC 6749 3.3


@transaction.atomic
def change_rules(
    *,
    actor: User,
    organization: Organization,
    vendor: Vendor,
    people_may_connect: bool,
    scopes: Sequence[str],
    accepts_any_server: bool = False,
) -> VendorSignInRules:
    """Where people may no longer connect, their connections end, here at once and at the vendor.

    `scopes`: the only ones to ask for; empty: those that the vendor names. `accepts_any_server`: the next sign-in may
    go to another authorization server than before. Raises: ConnectionNotOffered; Invalid; NotFound, Forbidden.
    """
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    if vendor.oauth is None:
        raise ConnectionNotOffered
    rules = sign_in_rules(organization.id, vendor.slug)
    if not all(re.fullmatch(SCOPE, each) for each in scopes):
        raise Invalid(sentence("A scope may not contain spaces or quotation marks."))
    rules.people_may_connect, rules.scopes = people_may_connect, " ".join(dict.fromkeys(scopes))
    former = rules.issuer
    if accepts_any_server:
        rules.issuer = ""
    ended = 0 if people_may_connect else _end_own_ones(actor, organization, vendor.slug)
    _record(rules, actor, ended=ended, former_issuer=former if accepts_any_server else "")
    return rules


def _record(rules: VendorSignInRules, actor: User, **facts: object) -> None:
    rules.changed_at = clock.now()
    rules.save()
    record_admin(
        EventType.VENDOR_SIGN_IN_RULES_CHANGED,
        org_id=rules.organization_id,
        actor=actor.as_actor(),
        target=rules.as_target(),
        metadata={
            "vendor": rules.vendor,
            "people_may_connect": rules.people_may_connect,
            "scopes": rules.scopes,
            **facts,
        },
    )
    epochs.bump_on_commit(epochs.organization(rules.organization_id))


def _end_own_ones(actor: User, organization: Organization, vendor: str) -> int:
    """How many connections of people ended. Sign-ins that wait for the callback end with them."""
    level = CredentialScope.PERSON.value
    VendorSignIn.objects.filter(organization=organization, vendor=vendor, level=level).delete()
    rows = VendorConnection.objects.filter(organization=organization, vendor=vendor, membership__isnull=False)
    ended = list(rows.select_related("membership"))
    for row in ended:
        record_connection(EventType.VENDOR_CONNECTION_ENDED, row, actor)
        row.delete()
    return len(ended)

"""Explains to a caller why it has no tools, and who can help."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from gateway.catalog.vendor import Vendor
from proxy.caller import Caller
from proxy.calls.decide import may_use_vendor
from proxy.outcomes import Denial, Denied

_SENTENCES = {
    Denial.NO_SERVER_ACCESS: (
        "You have no access to {names}: an admin of {organization} can give it at {place}/access."
    ),
    Denial.NO_CREDENTIALS: (
        "No credentials for {names} apply to you: an admin of {organization} can store some at {place}/connections."
    ),
    Denial.SCOPE: "This token does not cover {names}: sign in again from the app and ask for the scope mcp:all.",
}
_FOR_PEOPLE = {
    **_SENTENCES,
    Denial.NO_SERVER_ACCESS: "You have no access to {names}. Ask for it at {place}/access-requests.",
}
_NONE_CONNECTED = "No vendor is connected here: an admin of {organization} can connect one at {place}/connections."


def why_no_vendor(caller: Caller, vendors: Sequence[Vendor]) -> str:
    """Sentences for a caller who may use none of `vendors`. Spec: D109, D142"""
    organization = caller.organization
    facts = {"organization": organization.name, "place": f"{settings.BASE_URL}/orgs/{organization.org_id}"}
    names: dict[Denial, list[str]] = {}
    for vendor in vendors:
        verdict = may_use_vendor(caller, vendor)
        # Only vendors that the organization has connected are named.
        if organization.credentials.get(vendor.slug) and isinstance(verdict, Denied):
            names.setdefault(verdict.denial, []).append(vendor.name)
    found = [
        sentence.format(names=", ".join(names[denial]), **facts)
        for denial, sentence in (_SENTENCES if caller.principal.user_id is None else _FOR_PEOPLE).items()
        if denial in names
    ]
    return " ".join(found) or _NONE_CONNECTED.format(**facts)

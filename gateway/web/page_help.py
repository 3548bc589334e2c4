"""The document that helps with each page, by its route: the link "?" in the frame."""

from __future__ import annotations

from collections.abc import Mapping

from django.urls import reverse

# Without a document of its own: the overview.
OVERVIEW = ""
# A document's name, with the part that fits where a heading does.
_DOCUMENTS: Mapping[str, tuple[str, ...]] = {
    OVERVIEW: ("docs", "docs-search", "docs-document", "api-docs", "migrate"),
    "concepts": ("landing", "proxy_pages:search"),
    "first-steps": ("signin", "orgs:welcome", "proxy_pages:home", "setup", "proxy_pages:setup"),
    "recipes/why-refused": ("proxy_pages:explain", "proxy_pages:connection-test"),
    "people": ("orgs:members", "orgs:person"),
    "people#roles": ("orgs:member-role", "orgs:member-owner", "orgs:step-down"),
    "people#invite-people": ("orgs:invite", "orgs:invite-people", "orgs:invitations", "orgs:invitation-revoke"),
    "people#vendor-access": (
        "orgs:access-requests",
        "orgs:default-access",
        "orgs:person-access",
        "orgs:server-access",
        "orgs:settings",
        "proxy_pages:vendor-access",
    ),
    "people#teams": (
        "credentials:team-credential",
        "credentials:team-credential-delete",
        "credentials:team-credentials",
        "orgs:team",
        "orgs:team-access",
        "orgs:team-delete",
        "orgs:team-settings",
        "orgs:team-tools",
        "orgs:teams",
    ),
    "people#remove-someone": ("orgs:leave", "orgs:member-remove", "orgs:organization-delete"),
    "people#your-own-sign-ins": ("profile", "end-sessions"),
    "automate": ("api-try", "token-new", "token-revoke"),
    "people#email": ("mail-choices",),
    "alerts": ("proxy_pages:alerts",),
    "people#mail-domain": ("orgs:join", "orgs:mail-domain"),
    "vendors": ("proxy_pages:vendor", "proxy_pages:vendors"),
    "vendors#connect-a-vendor": ("credentials:catalog",),
    "vendors#sign-in-to-a-vendor": ("own-connections",),
    "vendors#levels-of-credentials": (
        "credentials:connection",
        "credentials:key",
        "credentials:key-delete",
        "credentials:key-new",
    ),
    "vendors#state": ("credentials:check", "proxy_pages:status"),
    "vendors#allowed-tools": ("proxy_pages:tool-access",),
    "vendors#resources-and-prompts": ("proxy_pages:client-items", "proxy_pages:vendor-items"),
    "vendors#run-a-tool": ("proxy_pages:tool",),
    "vendors#disconnect": ("credentials:disconnect",),
    "agents": ("oauth_pages:service-client", "oauth_pages:service-clients"),
    "agents#create-an-agent": ("oauth_pages:service-client-first-call", "oauth_pages:service-client-new"),
    "agents#key-secret-token": (
        "oauth_pages:agent-key",
        "oauth_pages:client-secret",
        "oauth_pages:device",
        "oauth_pages:service-client-settings",
    ),
    "agents#what-an-agent-can-use": (
        "credentials:service-client-credential",
        "credentials:service-client-credential-delete",
        "credentials:service-client-credentials",
        "oauth_pages:service-client-access",
        "oauth_pages:service-client-tools",
    ),
    "enterprise-authorization": ("oauth_pages:trusted-issuers", "oauth_pages:trusted-issuer-remove"),
    "agents#connected-apps": ("oauth_pages:apps", "authorize", "oauth_pages:consent"),
    "agents#delete-an-agent": ("oauth_pages:service-client-delete",),
    "recipes/limit-an-agent": ("proxy_pages:client-tools",),
    "log-fields#calls": (
        "audit_pages:own-calls",
        "audit_pages:person-activity",
        "audit_pages:request-log",
        "audit_pages:service-client-activity",
        "audit_pages:team-activity",
        "audit_pages:vendor-activity",
    ),
    "log-fields#changes": ("audit_pages:admin-log",),
    "recipes/ship-logs": (
        "audit_pages:log-destination",
        "audit_pages:log-destination-delete",
        "audit_pages:log-destination-new",
        "audit_pages:log-platforms",
        "audit_pages:log-shipping",
    ),
    "plan#usage": ("audit_pages:usage",),
    "plan#plan": ("billing_pages:plan",),
}
DOCUMENT_OF: Mapping[str, str] = {route: document for document, routes in _DOCUMENTS.items() for route in routes}


def help_url(route: str) -> str:
    """The overview for a route without an entry, such as that of an error page."""
    name, _, part = DOCUMENT_OF.get(route, OVERVIEW).partition("#")
    if not name:
        return reverse("docs")
    address = reverse("docs-document", args=[name])
    return f"{address}#{part}" if part else address

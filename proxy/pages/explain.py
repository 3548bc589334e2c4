"""The explain_access page, for oneself and, for admins, any subject of the organization."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from gateway.catalog import registry
from gateway.lib import ids
from gateway.lib.errors import Forbidden, Invalid, NotFound
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from oauth_ext import selectors as clients
from orgs import selectors
from orgs.models import Organization
from orgs.roles import Role
from proxy.control_plane.explanation import Explanation, explain_access
from proxy.protocol.tool_names import exposed_name

# Entries of the suggestion list, of people and of service clients each.
SUGGESTED = 200
TOOL_MAX_CHARACTERS = 200


class ExplainPage(OrgPage):
    """GET /orgs/:orgId/explain?who=&tool=[&vendor=]. Asks no vendor and counts nothing. Spec: §5 · D33, D67, D77"""

    gates = {"GET": Gate(Role.MEMBER)}
    title = "Explain access"
    nav_route = "proxy_pages:explain"

    def get(self, request: HttpRequest) -> HttpResponse:
        who, tool = request.GET.get("who", "").strip(), _exposed(request)
        fault, explanation = "", None
        if tool:
            try:
                explanation = self._explanation(who, tool)
            except Invalid as refusal:
                fault = refusal.message
        context = {
            "who": who,
            "tool": tool,
            "fault": fault,
            "explanation": explanation,
            "may_choose": self._may_choose,
            "people": self._suggestions(),
            "own_id": str(self.actor.id),
        }
        return self.page("proxy/explain.html", context, status=400 if fault else 200)

    @property
    def _may_choose(self) -> bool:
        return self.membership.has_role(Role.ADMIN)

    def _explanation(self, who: str, tool: str) -> Explanation:
        if len(tool) > TOOL_MAX_CHARACTERS:
            raise Invalid(f"A tool name has at most {TOOL_MAX_CHARACTERS} characters.")
        subject = str(self.actor.id)
        # Members may ask about themselves only.
        if who and who != subject:
            if not self._may_choose:
                raise Forbidden("You may look at your own access only.")
            subject = _subject(self.organization, who)
        is_own = subject == str(self.actor.id)
        return explain_access(subject, tool, org_id=self.organization.id, shows_count=is_own)

    def _suggestions(self) -> list[tuple[str, str]]:
        """(value to type, name) pairs."""
        if not self._may_choose:
            return []
        people = [(row.user.email, row.user.name) for row in selectors.members(self.organization)[:SUGGESTED]]
        machines = clients.service_clients(self.organization)[:SUGGESTED]
        return people + [(client.client_id, client.name) for client in machines]


def _exposed(request: HttpRequest) -> str:
    """The exposed tool name; with `vendor`, `tool` is the vendor's own name as in the request log."""
    tool = request.GET.get("tool", "").strip()
    vendor = registry.vendor_or_none(request.GET.get("vendor", ""))
    return exposed_name(vendor.tool_prefix, tool) if vendor and tool else tool


def _subject(organization: Organization, who: str) -> str:
    """The subject of an e-mail address, id, `svc_` name or whole subject.

    Raises: Invalid when several members have the address.
    """
    # Look-ups stay inside the organization. An unknown subject is returned unchanged and fails at the token step.
    if "@" in who:
        found = [str(row.user_id) for row in selectors.members(organization).filter(user__email__iexact=who)[:2]]
        if len(found) > 1:
            raise Invalid("Several members have this e-mail address. Use the id of the one you mean.")
        return found[0] if found else who
    key = ids.parse_id(who)
    is_member = key is not None and selectors.members(organization).filter(user_id=key).exists()
    if is_member or who.startswith("svc:"):
        return who
    try:
        return clients.service_client(organization, who).subject
    except NotFound:
        return who

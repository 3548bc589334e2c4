"""explain_access as a page: what the command prints, for oneself and, to admins, for anybody in the organization."""

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
from proxy.explanation import Explanation, explain_access
from proxy.protocol.tool_names import exposed_name

SUGGESTED = 200
TOOL_MAX_CHARACTERS = 200


class ExplainPage(OrgPage):
    """GET /orgs/:orgId/explain?who=&tool=[&vendor=]. Asks no vendor and counts nothing. Spec: §5 · D33, D67, D77"""

    gates = {"GET": Gate(Role.MEMBER)}
    title = "Explain access"
    nav_route = "proxy_pages:explain"

    def get(self, request: HttpRequest) -> HttpResponse:
        """The question, and below it the steps with the first that fails and who can help."""
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
        if who and who != subject:
            if not self._may_choose:
                raise Forbidden("You may look at your own access only.")
            subject = _subject(self.organization, who)
        is_own = subject == str(self.actor.id)
        return explain_access(subject, tool, org_id=self.organization.id, tells_count=is_own)

    def _suggestions(self) -> list[tuple[str, str]]:
        """What may be typed for somebody, and who it is."""
        if not self._may_choose:
            return []
        people = [(row.user.email, row.user.name) for row in selectors.members(self.organization)[:SUGGESTED]]
        machines = clients.service_clients(self.organization)[:SUGGESTED]
        return people + [(client.client_id, client.name) for client in machines]


def _exposed(request: HttpRequest) -> str:
    """The tool as tools/list names it; `vendor` says whose own name it is, as a row of the log has it."""
    tool = request.GET.get("tool", "").strip()
    vendor = registry.vendor_or_none(request.GET.get("vendor", ""))
    return exposed_name(vendor.tool_prefix, tool) if vendor and tool else tool


def _subject(organization: Organization, who: str) -> str:
    """Of somebody who is named by e-mail address, id, `svc_` name or whole subject.

    Nothing is looked up outside the organization: a subject that is none comes back as it is, and fails at its token.
    Raises: Invalid when several members have the address.
    """
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

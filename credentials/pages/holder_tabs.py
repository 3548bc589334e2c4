"""Pages of a holder's credentials belong to the Access tab of the team or the agent."""

from __future__ import annotations

from gateway.web.navigation import AGENT_TABS, TEAM_TABS
from gateway.web.org_page import OrgPage
from proxy.control_plane.credential_holder import of_client, of_team


class OfTeam(OrgPage):
    nav_route = "orgs:teams"
    tabs = TEAM_TABS
    tab_route = "orgs:team-access"
    find_holder = staticmethod(of_team)

    def tab_ids(self) -> tuple[object, ...]:
        return (self.kwargs["team_id"],)


class OfAgent(OrgPage):
    nav_route = "oauth_pages:service-clients"
    tabs = AGENT_TABS
    tab_route = "oauth_pages:service-client-access"
    find_holder = staticmethod(of_client)

    def tab_ids(self) -> tuple[object, ...]:
        return (self.kwargs["client_id"],)

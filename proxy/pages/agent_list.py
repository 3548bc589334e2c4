"""The page of a list that an agent has at one vendor."""

from __future__ import annotations

from typing import Any

from django.utils.functional import cached_property

from gateway.web.navigation import AGENT_TABS
from gateway.web.org_page import OrgPage
from oauth_ext.selectors import service_client
from proxy.pages.tool_editor import Holder


class AgentList(OrgPage):
    nav_route = "oauth_pages:service-clients"
    tabs = AGENT_TABS
    tab_route = "oauth_pages:service-client-tools"

    @cached_property
    def client(self) -> Any:
        return service_client(self.organization, self.kwargs["client_id"])

    def tab_ids(self) -> tuple[object, ...]:
        return (self.client.client_id,)

    def holder(self) -> Holder:
        return Holder(name=self.client.name, plural=self.client.name)

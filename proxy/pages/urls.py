"""URLs of the pages about using the gateway."""

from django.urls import path

from gateway.web.page_limit import page_limited
from proxy.pages.explain import ExplainPage
from proxy.pages.health import HealthPage
from proxy.pages.setup import SetupPage
from proxy.pages.status import status
from proxy.pages.tool_access import ToolAccessPage, ToolsPage

app_name = "proxy_pages"
urlpatterns = [
    path("orgs/<uuid:org_id>/setup", SetupPage.as_view(), name="setup"),
    path("orgs/<uuid:org_id>/tools", ToolsPage.as_view(), name="tools"),
    path("orgs/<uuid:org_id>/tools/<slug:vendor>", ToolAccessPage.as_view(), name="tool-access"),
    path("status", page_limited(status), name="status"),
    path("orgs/<uuid:org_id>/health", HealthPage.as_view(), name="health"),
    path("orgs/<uuid:org_id>/explain", ExplainPage.as_view(), name="explain"),
]

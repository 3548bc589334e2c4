"""URLs of the pages about using the gateway."""

from django.urls import path

from gateway.web.page_limit import page_limited
from proxy.pages.alerts import AlertsPage
from proxy.pages.connection_test import ConnectionTestPage
from proxy.pages.explain import ExplainPage
from proxy.pages.home import HomePage
from proxy.pages.search import SearchPage
from proxy.pages.setup import SetupPage
from proxy.pages.status import status, status_feed, status_json
from proxy.pages.tool import ToolPage
from proxy.pages.tool_access import ClientToolsPage, ToolAccessPage
from proxy.pages.vendor import VendorAccessPage, VendorPage
from proxy.pages.vendor_items import ClientItemsPage, VendorItemsPage
from proxy.pages.vendors import VendorsPage

app_name = "proxy_pages"
urlpatterns = [
    path("orgs/<uuid:org_id>", HomePage.as_view(), name="home"),
    path("orgs/<uuid:org_id>/setup", SetupPage.as_view(), name="setup"),
    path("orgs/<uuid:org_id>/setup/test", ConnectionTestPage.as_view(), name="connection-test"),
    path("orgs/<uuid:org_id>/vendors", VendorsPage.as_view(), name="vendors"),
    path("orgs/<uuid:org_id>/vendors/<slug:vendor>", VendorPage.as_view(), name="vendor"),
    path("orgs/<uuid:org_id>/vendors/<slug:vendor>/access", VendorAccessPage.as_view(), name="vendor-access"),
    path("orgs/<uuid:org_id>/vendors/<slug:vendor>/resources", VendorItemsPage.as_view(), name="vendor-items"),
    path("orgs/<uuid:org_id>/vendors/<slug:vendor>/tools", ToolAccessPage.as_view(), name="tool-access"),
    # A tool's name may hold a slash.
    path("orgs/<uuid:org_id>/vendors/<slug:vendor>/tools/<path:tool>", ToolPage.as_view(), name="tool"),
    path(
        "orgs/<uuid:org_id>/agents/<str:client_id>/tools/<slug:vendor>",
        ClientToolsPage.as_view(),
        name="client-tools",
    ),
    path(
        "orgs/<uuid:org_id>/agents/<str:client_id>/resources/<slug:vendor>",
        ClientItemsPage.as_view(),
        name="client-items",
    ),
    path("orgs/<uuid:org_id>/settings/alerts", AlertsPage.as_view(), name="alerts"),
    path("status", page_limited(status), name="status"),
    path("status.json", page_limited(status_json), name="status-json"),
    path("status.atom", page_limited(status_feed), name="status-feed"),
    path("orgs/<uuid:org_id>/explain", ExplainPage.as_view(), name="explain"),
    path("orgs/<uuid:org_id>/search", SearchPage.as_view(), name="search"),
]

"""URLs of the proxy's management API."""

from django.urls import path

from proxy.api.alerts import (
    AlertList,
    AlertMessageList,
    AlertSecretRotation,
    AlertSettingsView,
    AlertTest,
)
from proxy.api.discover import Discover
from proxy.api.health import VendorHealthList
from proxy.api.vendor_items import VendorItems

app_name = "proxy_api"
# Included before orgs.api, whose route would take `discover` and `items` for roles.
urlpatterns = [
    path("orgs/<str:org_id>/alert-settings", AlertSettingsView.as_view(), name="alert-settings"),
    path("orgs/<str:org_id>/alert-settings/rotate-secret", AlertSecretRotation.as_view(), name="alert-secret"),
    path("orgs/<str:org_id>/alert-settings/test", AlertTest.as_view(), name="alert-test"),
    path("orgs/<str:org_id>/alerts", AlertList.as_view(), name="alerts"),
    path("orgs/<str:org_id>/alert-messages", AlertMessageList.as_view(), name="alert-messages"),
    path("orgs/<str:org_id>/tool-access/<str:vendor>/discover", Discover.as_view(), name="discover"),
    path("orgs/<str:org_id>/tool-access/<str:vendor>/items", VendorItems.as_view(), name="vendor-items"),
    path("orgs/<str:org_id>/vendor-health", VendorHealthList.as_view(), name="vendor-health"),
]

"""URLs of the proxy's management API."""

from django.urls import path

from proxy.api.discover import Discover
from proxy.api.health import VendorHealthList

app_name = "proxy_api"
# Included before orgs.api, whose route would take `discover` for a role.
urlpatterns = [
    path("orgs/<str:org_id>/tool-access/<str:vendor>/discover", Discover.as_view(), name="discover"),
    path("orgs/<str:org_id>/vendor-health", VendorHealthList.as_view(), name="vendor-health"),
]

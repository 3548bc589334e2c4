"""Addresses of the management API of the proxy."""

from __future__ import annotations

from django.urls import path

from proxy.api.discover import Discover
from proxy.api.health import VendorHealthList

app_name = "proxy_api"
# Before the routes of orgs.api: `discover` is no role.
urlpatterns = [
    path("orgs/<str:org_id>/tool-access/<str:vendor>/discover", Discover.as_view(), name="discover"),
    path("orgs/<str:org_id>/vendor-health", VendorHealthList.as_view(), name="vendor-health"),
]

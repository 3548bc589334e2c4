from __future__ import annotations

from django.urls import path

from credentials.api import connections, keys, vendors

app_name = "credentials_api"
_ORG = "orgs/<str:org_id>"
_TEAM = f"{_ORG}/teams/<str:team_id>/credentials"
_CLIENT = f"{_ORG}/service-clients/<str:client_id>/credentials"
urlpatterns = [
    path("vendors", vendors.VendorList.as_view(), name="vendors"),
    path(f"{_ORG}/credentials", connections.ConnectedVendors.as_view(), name="connected"),
    path(f"{_ORG}/credentials/<str:vendor>", connections.OrganizationCredential.as_view(), name="credential"),
    path(f"{_ORG}/credentials/<str:vendor>/keys", keys.KeyList.as_view(), name="keys"),
    path(f"{_ORG}/credentials/<str:vendor>/keys/<str:key_id>", keys.KeyDetail.as_view(), name="key"),
    path(_TEAM, connections.TeamVendors.as_view(), name="team-vendors"),
    path(f"{_TEAM}/<str:vendor>", connections.TeamCredential.as_view(), name="team-credential"),
    path(_CLIENT, connections.ServiceClientVendors.as_view(), name="client-vendors"),
    path(f"{_CLIENT}/<str:vendor>", connections.ServiceClientCredential.as_view(), name="client-credential"),
]

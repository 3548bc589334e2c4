from __future__ import annotations

from django.urls import path

from credentials.api import credentials, keys, vendors

app_name = "credentials_api"
_ORG = "orgs/<str:org_id>"
_TEAM = f"{_ORG}/teams/<str:team_id>/credentials"
_CLIENT = f"{_ORG}/service-clients/<str:client_id>/credentials"
urlpatterns = [
    path("vendors", vendors.VendorList.as_view(), name="vendors"),
    path(f"{_ORG}/credentials", credentials.ConnectedVendors.as_view(), name="connected"),
    path(f"{_ORG}/credentials/<str:vendor>", credentials.OrganizationCredential.as_view(), name="credential"),
    path(f"{_ORG}/credentials/<str:vendor>/keys", keys.KeyList.as_view(), name="keys"),
    path(f"{_ORG}/credentials/<str:vendor>/keys/<str:key_id>", keys.KeyDetail.as_view(), name="key"),
    path(_TEAM, credentials.TeamVendors.as_view(), name="team-vendors"),
    path(f"{_TEAM}/<str:vendor>", credentials.TeamCredential.as_view(), name="team-credential"),
    path(_CLIENT, credentials.ServiceClientVendors.as_view(), name="client-vendors"),
    path(f"{_CLIENT}/<str:vendor>", credentials.ServiceClientCredential.as_view(), name="client-credential"),
]

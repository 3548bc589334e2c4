from django.urls import path

from credentials.api import connections, keys, vendor_questions, vendors
from credentials.api.credentials import ConnectedVendors, HolderCredential, HolderVendors, OrganizationCredential
from proxy.control_plane.credential_holder import of_client, of_team

app_name = "credentials_api"
_ORG = "orgs/<str:org_id>"
_TEAM = f"{_ORG}/teams/<str:team_id>/credentials"
_CLIENT = f"{_ORG}/service-clients/<str:client_id>/credentials"
urlpatterns = [
    path("vendors", vendors.VendorList.as_view(), name="vendors"),
    path(f"{_ORG}/credentials", ConnectedVendors.as_view(), name="connected"),
    path(f"{_ORG}/credentials/<str:vendor>", OrganizationCredential.as_view(), name="credential"),
    path(f"{_ORG}/credentials/<str:vendor>/keys", keys.KeyList.as_view(), name="keys"),
    path(f"{_ORG}/credentials/<str:vendor>/keys/<str:key_id>", keys.KeyDetail.as_view(), name="key"),
    path(f"{_ORG}/vendor-connections", connections.OrganizationConnections.as_view(), name="vendor-connections"),
    path(
        f"{_ORG}/vendor-connections/<str:vendor>",
        connections.OrganizationConnection.as_view(),
        name="vendor-connection",
    ),
    path(f"{_ORG}/vendor-connections/<str:vendor>/rules", connections.SignInRules.as_view(), name="sign-in-rules"),
    path(
        f"{_ORG}/vendor-questions/<str:vendor>",
        vendor_questions.VendorQuestionRules.as_view(),
        name="vendor-questions",
    ),
    path("profile/vendor-connections", connections.OwnConnections.as_view(), name="own-vendor-connections"),
    path("profile/vendor-connections/<str:vendor>", connections.OwnConnection.as_view(), name="own-vendor-connection"),
    path(_TEAM, HolderVendors.as_view(find_holder=of_team), name="team-vendors"),
    path(f"{_TEAM}/<str:vendor>", HolderCredential.as_view(find_holder=of_team), name="team-credential"),
    path(_CLIENT, HolderVendors.as_view(find_holder=of_client), name="client-vendors"),
    path(f"{_CLIENT}/<str:vendor>", HolderCredential.as_view(find_holder=of_client), name="client-credential"),
]

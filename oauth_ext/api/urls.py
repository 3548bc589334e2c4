"""Routes of the management API of service clients."""

from django.urls import path

from oauth_ext.api import service_clients as views
from oauth_ext.api import tool_access

app_name = "oauth_api"
_CLIENTS = "orgs/<str:org_id>/service-clients"
urlpatterns = [
    path(_CLIENTS, views.ServiceClientList.as_view(), name="service-clients"),
    path(f"{_CLIENTS}/<str:client_id>", views.ServiceClientDetail.as_view(), name="service-client"),
    path(f"{_CLIENTS}/<str:client_id>/agent-key", views.AgentKeyView.as_view(), name="agent-key"),
    path(f"{_CLIENTS}/<str:client_id>/rotate-secret", views.ClientSecretView.as_view(), name="rotate-secret"),
    path(f"{_CLIENTS}/<str:client_id>/tool-access", tool_access.ClientToolAccess.as_view(), name="client-tools"),
    path(
        f"{_CLIENTS}/<str:client_id>/tool-access/<str:vendor>",
        tool_access.ClientVendorToolAccess.as_view(),
        name="client-vendor-tools",
    ),
]

"""Routes of the management API of service clients."""

from django.urls import path

from oauth_ext.api import service_clients as views

app_name = "oauth_api"
_CLIENTS = "orgs/<str:org_id>/service-clients"
urlpatterns = [
    path(_CLIENTS, views.ServiceClientList.as_view(), name="service-clients"),
    path(f"{_CLIENTS}/<str:client_id>", views.ServiceClientDetail.as_view(), name="service-client"),
    path(f"{_CLIENTS}/<str:client_id>/agent-key", views.AgentKeyView.as_view(), name="agent-key"),
]

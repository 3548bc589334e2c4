"""Routes of the management API of service clients."""

from django.urls import path

from oauth_ext.api import item_access, tool_access, trusted_issuers
from oauth_ext.api import service_clients as views

app_name = "oauth_api"
_CLIENTS = "orgs/<str:org_id>/service-clients"
_ISSUERS = "orgs/<str:org_id>/trusted-issuers"
urlpatterns = [
    path(_CLIENTS, views.ServiceClientList.as_view(), name="service-clients"),
    path(f"{_CLIENTS}/<str:client_id>", views.ServiceClientDetail.as_view(), name="service-client"),
    path(f"{_CLIENTS}/<str:client_id>/acting", trusted_issuers.ClientActing.as_view(), name="client-acting"),
    path(_ISSUERS, trusted_issuers.TrustedIssuerList.as_view(), name="trusted-issuers"),
    path(f"{_ISSUERS}/<str:issuer_id>", trusted_issuers.TrustedIssuerDetail.as_view(), name="trusted-issuer"),
    path(f"{_CLIENTS}/<str:client_id>/agent-key", views.AgentKeyView.as_view(), name="agent-key"),
    path(f"{_CLIENTS}/<str:client_id>/rotate-secret", views.ClientSecretView.as_view(), name="rotate-secret"),
    path(f"{_CLIENTS}/<str:client_id>/tool-access", tool_access.ClientToolAccess.as_view(), name="client-tools"),
    path(
        f"{_CLIENTS}/<str:client_id>/tool-access/<str:vendor>",
        tool_access.ClientVendorToolAccess.as_view(),
        name="client-vendor-tools",
    ),
    path(
        f"{_CLIENTS}/<str:client_id>/item-access/<str:vendor>",
        item_access.ClientItemAccess.as_view(),
        name="client-items",
    ),
    path(
        f"{_CLIENTS}/<str:client_id>/item-access/<str:vendor>/<str:kind>",
        item_access.ClientVendorItemAccess.as_view(),
        name="client-vendor-items",
    ),
]

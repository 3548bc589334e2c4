"""Routes of these pages."""

from django.urls import path

from gateway.web.rate import backstopped
from oauth_ext.pages import service_client, service_client_keys, service_clients
from oauth_ext.pages.apps import AppsPage
from oauth_ext.pages.consent import ConsentPage
from oauth_ext.pages.device import DevicePage
from oauth_ext.pages.service_client_access import ServiceClientAccessPage
from oauth_ext.pages.service_client_settings import ServiceClientSettingsPage
from oauth_ext.pages.trusted_issuers import RemoveTrustedIssuerPage, TrustedIssuersPage

app_name = "oauth_pages"
_AGENTS = "orgs/<uuid:org_id>/agents"
_AGENT = f"{_AGENTS}/<str:client_id>"
urlpatterns = [
    path("device", backstopped(DevicePage.as_view()), name="device"),
    path("oauth/authorize/consent", backstopped(ConsentPage.as_view()), name="consent"),
    path("orgs/<uuid:org_id>/apps", AppsPage.as_view(), name="apps"),
    path(_AGENTS, service_clients.ServiceClientsPage.as_view(), name="service-clients"),
    path(f"{_AGENTS}/new", service_clients.NewServiceClientPage.as_view(), name="service-client-new"),
    path(_AGENT, service_client.ServiceClientPage.as_view(), name="service-client"),
    path(f"{_AGENT}/first-call", service_client.FirstCallPage.as_view(), name="service-client-first-call"),
    path(f"{_AGENT}/access", ServiceClientAccessPage.as_view(), name="service-client-access"),
    path(f"{_AGENT}/tools", service_client.ServiceClientToolsPage.as_view(), name="service-client-tools"),
    path(f"{_AGENT}/settings", ServiceClientSettingsPage.as_view(), name="service-client-settings"),
    path(f"{_AGENT}/agent-key", service_client_keys.AgentKeyPage.as_view(), name="agent-key"),
    path(f"{_AGENT}/client-secret", service_client_keys.ClientSecretPage.as_view(), name="client-secret"),
    path("orgs/<uuid:org_id>/settings/identity-providers", TrustedIssuersPage.as_view(), name="trusted-issuers"),
    path(
        "orgs/<uuid:org_id>/settings/identity-providers/<uuid:issuer_id>/remove",
        RemoveTrustedIssuerPage.as_view(),
        name="trusted-issuer-remove",
    ),
    path(f"{_AGENT}/delete", service_client_keys.DeleteServiceClientPage.as_view(), name="service-client-delete"),
]

"""Routes of these pages."""

from django.urls import path

from gateway.web.rate import backstopped
from oauth_ext.pages.apps import AppsPage
from oauth_ext.pages.consent import ConsentPage
from oauth_ext.pages.device import DevicePage
from oauth_ext.pages.service_client import ServiceClientPage
from oauth_ext.pages.service_clients import AgentKeyPage, DeleteServiceClientPage, ServiceClientsPage

app_name = "oauth_pages"
urlpatterns = [
    path("device", backstopped(DevicePage.as_view()), name="device"),
    path("oauth/authorize/consent", backstopped(ConsentPage.as_view()), name="consent"),
    path("orgs/<uuid:org_id>/apps", AppsPage.as_view(), name="apps"),
    path("orgs/<uuid:org_id>/service-accounts", ServiceClientsPage.as_view(), name="service-clients"),
    path("orgs/<uuid:org_id>/service-accounts/<str:client_id>", ServiceClientPage.as_view(), name="service-client"),
    path("orgs/<uuid:org_id>/service-accounts/<str:client_id>/agent-key", AgentKeyPage.as_view(), name="agent-key"),
    path(
        "orgs/<uuid:org_id>/service-accounts/<str:client_id>/delete",
        DeleteServiceClientPage.as_view(),
        name="service-client-delete",
    ),
]

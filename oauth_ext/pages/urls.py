"""Routes of these pages."""

from __future__ import annotations

from django.urls import path

from gateway.web.rate import backstopped
from oauth_ext.pages.apps import AppsPage
from oauth_ext.pages.consent import ConsentPage
from oauth_ext.pages.device import DevicePage
from oauth_ext.pages.service_account import ServiceAccountPage
from oauth_ext.pages.service_accounts import AgentKeyPage, DeleteServiceAccountPage, ServiceAccountsPage

app_name = "oauth_pages"
urlpatterns = [
    path("device", backstopped(DevicePage.as_view()), name="device"),
    path("oauth/authorize/consent", backstopped(ConsentPage.as_view()), name="consent"),
    path("orgs/<uuid:org_id>/apps", AppsPage.as_view(), name="apps"),
    path("orgs/<uuid:org_id>/service-accounts", ServiceAccountsPage.as_view(), name="service-accounts"),
    path("orgs/<uuid:org_id>/service-accounts/<str:client_id>", ServiceAccountPage.as_view(), name="service-account"),
    path("orgs/<uuid:org_id>/service-accounts/<str:client_id>/agent-key", AgentKeyPage.as_view(), name="agent-key"),
    path(
        "orgs/<uuid:org_id>/service-accounts/<str:client_id>/delete",
        DeleteServiceAccountPage.as_view(),
        name="service-account-delete",
    ),
]

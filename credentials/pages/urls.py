from django.urls import path

from credentials.pages.connections import ConnectionPage, ConnectionsPage
from credentials.pages.holder_credentials import (
    ChooseServiceClientCredentialPage,
    ChooseTeamCredentialPage,
    ServiceClientCredentialPage,
    TeamCredentialPage,
)

app_name = "credentials"
urlpatterns = [
    path("orgs/<uuid:org_id>/connections", ConnectionsPage.as_view(), name="connections"),
    path("orgs/<uuid:org_id>/connections/<slug:vendor>", ConnectionPage.as_view(), name="connection"),
    path(
        "orgs/<uuid:org_id>/teams/<uuid:team_id>/credentials",
        ChooseTeamCredentialPage.as_view(),
        name="team-credentials",
    ),
    path(
        "orgs/<uuid:org_id>/teams/<uuid:team_id>/credentials/<slug:vendor>",
        TeamCredentialPage.as_view(),
        name="team-credential",
    ),
    path(
        "orgs/<uuid:org_id>/service-accounts/<str:client_id>/credentials",
        ChooseServiceClientCredentialPage.as_view(),
        name="service-client-credentials",
    ),
    path(
        "orgs/<uuid:org_id>/service-accounts/<str:client_id>/credentials/<slug:vendor>",
        ServiceClientCredentialPage.as_view(),
        name="service-client-credential",
    ),
]

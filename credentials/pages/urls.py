from django.urls import path

from credentials.pages.checks import CheckPage
from credentials.pages.connections import CatalogPage, ConnectionPage
from credentials.pages.deletions import (
    DeleteKeyPage,
    DeleteServiceClientCredentialPage,
    DeleteTeamCredentialPage,
    DisconnectPage,
)
from credentials.pages.holder_credentials import (
    ChooseServiceClientCredentialPage,
    ChooseTeamCredentialPage,
    ServiceClientCredentialPage,
    TeamCredentialPage,
)
from credentials.pages.named_keys import KeyPage, NewKeyPage

app_name = "credentials"
urlpatterns = [
    path("orgs/<uuid:org_id>/catalog", CatalogPage.as_view(), name="catalog"),
    path("orgs/<uuid:org_id>/vendors/<slug:vendor>/settings", ConnectionPage.as_view(), name="connection"),
    path("orgs/<uuid:org_id>/vendors/<slug:vendor>/settings/disconnect", DisconnectPage.as_view(), name="disconnect"),
    path("orgs/<uuid:org_id>/vendors/<slug:vendor>/keys/new", NewKeyPage.as_view(), name="key-new"),
    path("orgs/<uuid:org_id>/vendors/<slug:vendor>/keys/<uuid:key_id>", KeyPage.as_view(), name="key"),
    path(
        "orgs/<uuid:org_id>/vendors/<slug:vendor>/keys/<uuid:key_id>/delete", DeleteKeyPage.as_view(), name="key-delete"
    ),
    path("orgs/<uuid:org_id>/credentials/<uuid:credential_id>/check", CheckPage.as_view(), name="check"),
    path(
        "orgs/<uuid:org_id>/teams/<uuid:team_id>/credentials/<slug:vendor>/delete",
        DeleteTeamCredentialPage.as_view(),
        name="team-credential-delete",
    ),
    path(
        "orgs/<uuid:org_id>/agents/<str:client_id>/credentials/<slug:vendor>/delete",
        DeleteServiceClientCredentialPage.as_view(),
        name="service-client-credential-delete",
    ),
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
        "orgs/<uuid:org_id>/agents/<str:client_id>/credentials",
        ChooseServiceClientCredentialPage.as_view(),
        name="service-client-credentials",
    ),
    path(
        "orgs/<uuid:org_id>/agents/<str:client_id>/credentials/<slug:vendor>",
        ServiceClientCredentialPage.as_view(),
        name="service-client-credential",
    ),
]

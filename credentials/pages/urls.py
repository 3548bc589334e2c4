"""Addresses of pages about vendor connections."""

from __future__ import annotations

from django.urls import path

from credentials.pages.connections import ConnectionPage, ConnectionsPage

app_name = "credentials"
urlpatterns = [
    path("orgs/<uuid:org_id>/connections", ConnectionsPage.as_view(), name="connections"),
    path("orgs/<uuid:org_id>/connections/<slug:vendor>", ConnectionPage.as_view(), name="connection"),
]

"""Addresses of pages about organizations and the person."""

from __future__ import annotations

from django.urls import path

from orgs.pages.invite import InvitePage
from orgs.pages.overview import OverviewPage
from orgs.pages.welcome import WelcomePage

app_name = "orgs"
urlpatterns = [
    path("welcome", WelcomePage.as_view(), name="welcome"),
    path("invite/<str:token>", InvitePage.as_view(), name="invite"),
    path("orgs/<uuid:org_id>", OverviewPage.as_view(), name="overview"),
]

from __future__ import annotations

from django.urls import path

from gateway.support.actions import ActionPage
from gateway.support.organization import OrganizationPage
from gateway.support.person import PersonPage
from gateway.support.request import RequestPage
from gateway.support.see_as import SeeAsPage
from gateway.web.page_limit import all_page_limited

app_name = "support"
_ORGANIZATION = "organizations/<uuid:org_id>"
urlpatterns = all_page_limited(
    [
        path(_ORGANIZATION, OrganizationPage.as_view(), name="organization"),
        path(f"{_ORGANIZATION}/requests/<str:request_id>", RequestPage.as_view(), name="request"),
        path(f"{_ORGANIZATION}/see-as/<str:who>", SeeAsPage.as_view(), name="see-as"),
        path(f"{_ORGANIZATION}/actions/<slug:action>/<slug:thing>", ActionPage.as_view(), name="action"),
        path("people/<uuid:user_id>", PersonPage.as_view(), name="person"),
        path("people/<uuid:user_id>/actions/<slug:action>", ActionPage.as_view(), name="person-action"),
        path("apps/<uuid:app_id>/actions/<slug:action>", ActionPage.as_view(), name="app-action"),
    ]
)

"""Routes of the audit pages."""

from django.urls import path

from audit.pages import destination, shipping
from audit.pages.admin_log import AdminLogPage
from audit.pages.request_log import (
    OwnCallsPage,
    PersonActivityPage,
    RequestLogPage,
    ServiceClientActivityPage,
    TeamActivityPage,
    VendorActivityPage,
)
from audit.pages.usage import UsagePage

app_name = "audit_pages"
_SHIPPING = "orgs/<uuid:org_id>/activity/log-shipping"
_DESTINATION = f"{_SHIPPING}/<uuid:destination_id>"
urlpatterns = [
    path("orgs/<uuid:org_id>/activity", RequestLogPage.as_view(), name="request-log"),
    path("orgs/<uuid:org_id>/activity/mine", OwnCallsPage.as_view(), name="own-calls"),
    path("orgs/<uuid:org_id>/activity/changes", AdminLogPage.as_view(), name="admin-log"),
    path("orgs/<uuid:org_id>/activity/usage", UsagePage.as_view(), name="usage"),
    path("orgs/<uuid:org_id>/people/<uuid:user_id>/activity", PersonActivityPage.as_view(), name="person-activity"),
    path("orgs/<uuid:org_id>/teams/<uuid:team_id>/activity", TeamActivityPage.as_view(), name="team-activity"),
    path(
        "orgs/<uuid:org_id>/agents/<str:client_id>/activity",
        ServiceClientActivityPage.as_view(),
        name="service-client-activity",
    ),
    path("orgs/<uuid:org_id>/vendors/<slug:vendor>/activity", VendorActivityPage.as_view(), name="vendor-activity"),
    path(_SHIPPING, shipping.LogShippingPage.as_view(), name="log-shipping"),
    path(f"{_SHIPPING}/new", shipping.ChoosePlatformPage.as_view(), name="log-platforms"),
    path(f"{_SHIPPING}/new/<str:platform>", shipping.NewDestinationPage.as_view(), name="log-destination-new"),
    path(_DESTINATION, destination.DestinationPage.as_view(), name="log-destination"),
    path(f"{_DESTINATION}/delete", destination.DeleteDestinationPage.as_view(), name="log-destination-delete"),
]

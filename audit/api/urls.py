from django.urls import path

from audit.api import destinations
from audit.api.logs import AdminLog, OwnCalls, RequestLog

app_name = "audit_api"
_SHIPPING = "orgs/<str:org_id>/log-shipping"
_DESTINATION = f"{_SHIPPING}/<str:destination_id>"
urlpatterns = [
    path("audit", RequestLog.as_view(), name="request-log"),
    path("audit/mine", OwnCalls.as_view(), name="own-calls"),
    path("audit/admin", AdminLog.as_view(), name="admin-log"),
    path(_SHIPPING, destinations.DestinationList.as_view(), name="log-destinations"),
    path(_DESTINATION, destinations.DestinationDetail.as_view(), name="log-destination"),
    path(f"{_DESTINATION}/test", destinations.DestinationTest.as_view(), name="log-destination-test"),
    path(f"{_DESTINATION}/replay", destinations.DestinationReplay.as_view(), name="log-destination-replay"),
]

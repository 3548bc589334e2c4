from django.urls import path

from audit.api.logs import AdminLog, RequestLog

app_name = "audit_api"
urlpatterns = [
    path("audit", RequestLog.as_view(), name="request-log"),
    path("audit/admin", AdminLog.as_view(), name="admin-log"),
]

"""Routes of the audit pages."""

from django.urls import path

from audit.pages.admin_log import AdminLogPage
from audit.pages.request_log import RequestLogPage
from audit.pages.usage import UsagePage

app_name = "audit_pages"
urlpatterns = [
    path("orgs/<uuid:org_id>/audit", RequestLogPage.as_view(), name="request-log"),
    path("orgs/<uuid:org_id>/audit/admin", AdminLogPage.as_view(), name="admin-log"),
    path("orgs/<uuid:org_id>/usage", UsagePage.as_view(), name="usage"),
]

"""Routes of the audit pages."""

from django.urls import path

from audit.pages.request_log import RequestLogPage

app_name = "audit_pages"
urlpatterns = [path("orgs/<uuid:org_id>/audit", RequestLogPage.as_view(), name="request-log")]

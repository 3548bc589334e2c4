"""Routes of the billing pages."""

from django.urls import path

from billing.pages.plan import PlanPage

app_name = "billing_pages"
urlpatterns = [path("orgs/<uuid:org_id>/billing", PlanPage.as_view(), name="plan")]

from django.urls import path

from audit.api.dashboard import SavingsDashboard, UsageDashboard, VendorsDashboard

app_name = "dashboard_api"
urlpatterns = [
    path("dashboard/usage", UsageDashboard.as_view(), name="usage"),
    path("dashboard/savings", SavingsDashboard.as_view(), name="savings"),
    path("dashboard/vendors", VendorsDashboard.as_view(), name="vendors"),
]

from django.urls import path

from billing.api.redeem import RedeemCode

app_name = "billing_api"
urlpatterns = [path("orgs/<str:org_id>/redeem-code", RedeemCode.as_view(), name="redeem-code")]

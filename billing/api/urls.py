from django.conf import settings
from django.urls import path

from billing.api.redeem import RedeemCode
from billing.api.sessions import Checkout, Portal
from billing.api.webhook import webhook

app_name = "billing_api"
urlpatterns = [
    path("orgs/<str:org_id>/redeem-code", RedeemCode.as_view(), name="redeem-code"),
    path("billing/checkout", Checkout.as_view(), name="checkout"),
    path("billing/portal", Portal.as_view(), name="portal"),
    path(f"webhooks/{settings.PAYMENT_PROVIDER}", webhook, name="webhook"),
]

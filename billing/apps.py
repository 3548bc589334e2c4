"""The app that owns subscriptions."""

from django.apps import AppConfig


class BillingConfig(AppConfig):
    """Billing."""

    name = "billing"
    verbose_name = "Billing"

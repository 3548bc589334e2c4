from django.apps import AppConfig


class BillingConfig(AppConfig):
    name = "billing"
    verbose_name = "Billing"

    def ready(self) -> None:
        # Importing the module connects its signal receivers.
        from billing import receivers  # noqa: F401

"""The project's own app: boot checks."""

from django.apps import AppConfig


class GatewayConfig(AppConfig):
    """Gateway."""

    name = "gateway"
    verbose_name = "Gateway"

    def ready(self) -> None:
        """Register the numbered boot checks."""
        from gateway import checks  # noqa: F401

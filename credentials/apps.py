"""The app that owns vendor credentials."""

from django.apps import AppConfig


class CredentialsConfig(AppConfig):
    """Credentials."""

    name = "credentials"
    verbose_name = "Credentials"

    def ready(self) -> None:
        """Take part in what happens to organizations."""
        from credentials import receivers  # noqa: F401

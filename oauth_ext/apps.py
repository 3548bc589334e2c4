"""App configuration of clients, agent keys and tokens."""

from django.apps import AppConfig


class OAuthExtConfig(AppConfig):
    name = "oauth_ext"
    verbose_name = "OAuth"

    def ready(self) -> None:
        # Registers the boot checks and the receivers of organization events.
        from oauth_ext import checks, receivers  # noqa: F401

"""The app that owns clients, agent keys and tokens."""

from django.apps import AppConfig


class OAuthExtConfig(AppConfig):
    """OAuth clients, agent keys and tokens."""

    name = "oauth_ext"
    verbose_name = "OAuth"

    def ready(self) -> None:
        """Register the boot checks; take part in what happens to members."""
        from oauth_ext import checks, receivers  # noqa: F401

"""The app that owns people, organizations and their grants."""

from django.apps import AppConfig


class OrgsConfig(AppConfig):
    """Organizations."""

    name = "orgs"
    verbose_name = "Organizations"

    def ready(self) -> None:
        """Connect the receivers."""
        from orgs import receivers  # noqa: F401

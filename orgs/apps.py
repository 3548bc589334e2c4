from django.apps import AppConfig


class OrgsConfig(AppConfig):
    name = "orgs"
    verbose_name = "Organizations"

    def ready(self) -> None:
        # Importing the module connects its signal receivers.
        from orgs import receivers  # noqa: F401
